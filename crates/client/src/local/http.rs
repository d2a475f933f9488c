//! HTTP requests made by this program, with the errors of a server.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use outpost_engine::ServerEnvironment;
use outpost_fetch::{Body, FetchError, Fetcher, Redirects, Request, RequestError};
use outpost_protocol::{ErrorKind, HttpRequestParams, RedirectPolicy, RpcError};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::{Error, HttpBody, HttpRequest, HttpResponse};

/// The limit of a body that is not streamed; the same as the server's.
const MAX_BUFFERED_BODY_BYTES: usize = 32 * 1024 * 1024;

/// Makes a request. Fails once `closed` is cancelled.
pub(super) async fn request(
    fetcher: &Fetcher,
    environment: &ServerEnvironment,
    closed: &CancellationToken,
    request: HttpRequest,
) -> Result<HttpResponse, Error> {
    let params = request.into_params();
    let streamed = params.stream_response;
    let request = build_request(params, environment)
        .map_err(|error| RpcError::invalid_params(format!("http/request {error}")))?;
    let exchange = async {
        let mut response = fetcher.fetch(request).await.map_err(fetch_error)?;
        let body = if streamed {
            HttpBody::new(LocalBody {
                body: response.body,
                closed: Box::pin(closed.clone().cancelled_owned()),
            })
        } else {
            let room = std::future::ready(());
            let buffered = response
                .body
                .collect(MAX_BUFFERED_BODY_BYTES, usize::MAX, room);
            HttpBody::whole(buffered.await.map_err(fetch_error)?.0)
        };
        Ok(HttpResponse::new(response.status, response.headers, body))
    };
    tokio::select! {
        response = exchange => response,
        () = closed.cancelled() => Err(Error::disconnected(super::executor::CLOSED)),
    }
}

fn fetch_error(error: FetchError) -> Error {
    RpcError::internal(format!("http/request failed: {error}"))
        .with_kind(ErrorKind::Http)
        .into()
}

fn build_request(
    params: HttpRequestParams,
    environment: &ServerEnvironment,
) -> Result<Request, RequestError> {
    let mut request = Request::new(&params.method, &params.url)?;
    for header in &params.headers {
        request = match &header.value_env_var {
            None => request.header(&header.name, &header.value)?,
            Some(variable) => {
                let lookup = |name: &str| environment.get(name).map(Into::into);
                request.header_from_environment(&header.name, &header.value, variable, lookup)?
            }
        };
    }
    let body = params.body_base64.map(|body| Bytes::from(body.0));
    let request = request.body(body.unwrap_or_default())?;
    Ok(request
        .timeout(params.timeout_ms.map(Duration::from_millis))
        .redirects(match params.redirect_policy {
            RedirectPolicy::Follow => Redirects::Follow,
            RedirectPolicy::Stop => Redirects::Stop,
        }))
}

/// A body that is read from the network on demand.
struct LocalBody {
    body: Body,
    /// Ready once the executor is closed.
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Stream for LocalBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Error::disconnected(super::executor::CLOSED))));
        }
        let next = ready!(Pin::new(&mut this.body).poll_next(cx));
        Poll::Ready(next.map(|chunk| {
            chunk.map_err(|error| Error::BodyFailed {
                message: error.to_string(),
            })
        }))
    }
}

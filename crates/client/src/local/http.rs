//! HTTP requests made by this program, with the errors of a server.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use outpost_engine::ServerEnvironment;
use outpost_fetch::{Body, FetchError, Fetcher, Request, RequestError};
use outpost_protocol::{ErrorKind, HttpRequestParams, RedirectPolicy, RpcError};
use tokio_util::sync::CancellationToken;

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
    let params = request.params;
    let is_streamed = params.stream_response;
    let request = build_request(params, environment)
        .map_err(|error| RpcError::invalid_params(format!("http/request {error}")))?;
    let exchange = async {
        let mut response = fetcher.fetch(request).await.map_err(fetch_error)?;
        let body = if is_streamed {
            stream_body(response.body, closed.clone())
        } else {
            let space = std::future::ready(Some(()));
            let buffered = response
                .body
                .collect(MAX_BUFFERED_BODY_BYTES, usize::MAX, space);
            HttpBody::whole(buffered.await.map_err(fetch_error)?.0)
        };
        Ok(HttpResponse::new(response.status, response.headers, body))
    };
    tokio::select! {
        response = exchange => response,
        () = closed.cancelled() => Err(closed_error()),
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
        let variable = header.value_env_var.as_deref();
        let lookup = |name: &str| environment.get(name).map(Into::into);
        request = request.header(&header.name, &header.value, variable, lookup)?;
    }
    let body = params.body_base64.map(|body| Bytes::from(body.0));
    let request = request.body(body.unwrap_or_default())?;
    Ok(request
        .timeout(params.timeout_ms.map(Duration::from_millis))
        .follow_redirects(params.redirect_policy == RedirectPolicy::Follow))
}

/// Reads a body from the network on demand. Fails once `closed` is cancelled.
fn stream_body(body: Body, closed: CancellationToken) -> HttpBody {
    HttpBody::new(stream::unfold(
        (body, closed),
        |(mut body, closed)| async move {
            let next = tokio::select! {
                biased;
                () = closed.cancelled() => Err(closed_error()),
                chunk = body.chunk() => chunk.map_err(|error| Error::BodyFailed {
                    message: error.to_string(),
                }),
            };
            let next = next.transpose();
            next.map(|next| (next, (body, closed)))
        },
    ))
}

fn closed_error() -> Error {
    Error::disconnected(super::executor::CLOSED)
}

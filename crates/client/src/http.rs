//! HTTP requests made by an executor: from this machine or from the server's host.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use outpost_protocol::{Base64Bytes, HttpHeaderParams, HttpRequestParams, RedirectPolicy};

use crate::{Error, start::millis};

/// An HTTP request to be made by an executor. By default redirects are followed, there is no timeout,
/// and the body of the response is streamed.
///
/// ```
/// # use outpost_client::HttpRequest;
/// let request = HttpRequest::post("https://api.example/things")
///     .header("Content-Type", "application/json")
///     .header_from_env("Authorization", "Bearer ", "THINGS_TOKEN")
///     .body(r#"{"name":"thing"}"#);
/// ```
#[derive(Clone)]
pub struct HttpRequest {
    pub(crate) params: HttpRequestParams,
}

impl HttpRequest {
    /// A request with any method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        HttpRequest {
            params: HttpRequestParams {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body_base64: None,
                timeout_ms: None,
                redirect_policy: RedirectPolicy::Follow,
                request_id: String::new(),
                stream_response: true,
                acked: false,
            },
        }
    }

    /// `GET`
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// `POST`
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header. Does not replace one with the same name.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(name.into(), value.into(), None)
    }

    /// Adds a header whose value is `value` followed by an environment variable of the executor, such
    /// as a secret that the client does not know. Some variables are rejected. A server must announce
    /// `httpHeaderEnvVars`.
    #[must_use]
    pub fn header_from_env(
        self,
        name: impl Into<String>,
        value: impl Into<String>,
        variable: impl Into<String>,
    ) -> Self {
        self.with(name.into(), value.into(), Some(variable.into()))
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.params.body_base64 = Some(Base64Bytes(body.into()));
        self
    }

    /// Limits the time until the end of the response's body.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.params.timeout_ms = Some(millis(timeout));
        self
    }

    /// Returns a redirect as the response instead of following it.
    #[must_use]
    pub fn without_redirects(mut self) -> Self {
        self.params.redirect_policy = RedirectPolicy::Stop;
        self
    }

    /// Requests a response in one message, with a body of at most 32 MiB. Needs fewer messages for a
    /// small response.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.params.stream_response = false;
        self
    }

    fn with(mut self, name: String, value: String, value_env_var: Option<String>) -> Self {
        self.params.headers.push(HttpHeaderParams {
            name,
            value,
            value_env_var,
        });
        self
    }
}

/// Leaves out everything that may be secret.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.params.method)
            .field("headers", &self.params.headers.len())
            .finish_non_exhaustive()
    }
}

/// The response to an HTTP request.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Lower-case names and values. A name may occur more than once.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: HttpBody,
}

impl HttpResponse {
    pub(crate) fn new(status: u16, headers: Vec<(String, String)>, body: HttpBody) -> Self {
        HttpResponse {
            status,
            headers,
            body,
        }
    }

    /// The first value of a header; the name is case-insensitive.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The body of a response as a stream of pieces.
///
/// A slow reader holds back only this body. The body is complete only if the stream ends without an
/// error. A lost connection is an error, because a body cannot be resumed. Dropping it cancels the
/// request.
pub struct HttpBody {
    pieces: Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>,
    is_over: bool,
}

impl HttpBody {
    pub(crate) fn new(pieces: impl Stream<Item = Result<Bytes, Error>> + Send + 'static) -> Self {
        HttpBody {
            pieces: Box::pin(pieces),
            is_over: false,
        }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        let piece = (!bytes.is_empty()).then_some(Ok(bytes));
        Self::new(futures_util::stream::iter(piece))
    }

    /// The next piece; `None` after the last piece. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Collects the rest of the body. Fails if it has more than `most` bytes.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if all.len() + piece.len() > most {
                return Err(Error::BodyTooLarge { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl Stream for HttpBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let next = this.pieces.as_mut().poll_next(cx);
        this.is_over = matches!(next, Poll::Ready(None | Some(Err(_))));
        next
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

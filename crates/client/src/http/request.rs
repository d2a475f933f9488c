//! HTTP requests.

use std::{fmt, time::Duration};

use outpost_protocol::{Base64Bytes, HttpHeaderParams, HttpRequestParams, RedirectPolicy};

use crate::start::millis;

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
    params: HttpRequestParams,
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

    /// The params of `http/request`.
    pub(crate) fn into_params(self) -> HttpRequestParams {
        self.params
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

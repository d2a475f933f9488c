//! What to ask for.

use std::{fmt, time::Duration};

use outpost_protocol::{Base64Bytes, HttpHeaderParams, HttpRequestParams, RedirectPolicy};

use crate::start::millis;

/// An HTTP request to be made by a place. Without more words, redirects are followed, nothing
/// limits its time, and the body of the response comes as it arrives.
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

    /// With a header, behind the others; one of the same name stays.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(name.into(), value.into(), None)
    }

    /// With a header whose value ends with that of a variable of the place: a secret that its
    /// client needn't know. Some variables are refused. A released server has to announce
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

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.params.body_base64 = Some(Base64Bytes(body.into()));
        self
    }

    /// All of it, the body of the response included, has so much time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.params.timeout_ms = Some(millis(timeout));
        self
    }

    /// A response that points elsewhere is the response.
    #[must_use]
    pub fn without_redirects(mut self) -> Self {
        self.params.redirect_policy = RedirectPolicy::Stop;
        self
    }

    /// The response comes when all of it is there, with a body of 32 MiB at most: fewer messages
    /// for what is known to be small.
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

    /// In the words of the wire.
    pub(crate) fn into_params(self) -> HttpRequestParams {
        self.params
    }
}

/// Without anything that could be a secret.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.params.method)
            .field("headers", &self.params.headers.len())
            .finish_non_exhaustive()
    }
}

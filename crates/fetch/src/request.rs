//! Requests.

use std::{ffi::OsString, fmt::Debug, os::unix::ffi::OsStrExt as _, sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Method, Url,
    header::{CONTENT_LENGTH, HeaderName, HeaderValue},
};

use crate::{RequestError, UrlFault, VariableFault};

/// The limit of headers, above what servers read.
const MAX_HEADERS: usize = 1024;
/// The limit of a URL, in bytes.
const MAX_URL_BYTES: usize = 65_000;

/// Variables with credentials of Outpost or of the client's product. A client may make requests from
/// this host, but must not send these credentials to a server of its choice.
const PROTECTED: [&str; 14] = [
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CONNECTORS_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
];
const OWN_PREFIX: &str = "OUTPOST_";

/// A valid request.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Bytes,
    pub(crate) timeout: Option<Duration>,
    pub(crate) follow_redirects: bool,
    pub(crate) observer: Option<Arc<dyn RedirectObserver>>,
}

/// Sees the redirects that a request follows.
pub trait RedirectObserver: Debug + Send + Sync {
    /// A request to another URL is about to be made.
    fn redirected(&self, method: &str, host: &str);
}

/// A header of a request.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// Whether its value is from the environment, and so for the named host only.
    pub(crate) is_from_environment: bool,
}

impl Request {
    /// Creates a request without headers, body or timeout.
    pub fn new(method: &str, url: &str) -> Result<Self, RequestError> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| RequestError::Method)?;
        // `CONNECT` opens a tunnel instead of returning a response.
        if method == Method::CONNECT {
            return Err(RequestError::Method);
        }
        let url = parse(url).map_err(RequestError::Url)?;
        Ok(Request {
            method,
            url,
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: None,
            follow_redirects: true,
            observer: None,
        })
    }

    /// Appends a header. Does not replace one of the same name. If `variable` is given, the value ends
    /// with that of the variable, which `lookup` returns.
    pub fn header(
        mut self,
        name: &str,
        value: &str,
        variable: Option<&str>,
        lookup: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, RequestError> {
        let value = match variable {
            Some(variable) => with_variable(name, value, variable, lookup)?,
            None => value.as_bytes().to_vec(),
        };
        if self.headers.len() == MAX_HEADERS {
            return Err(RequestError::TooManyHeaders(MAX_HEADERS));
        }
        let number = self.headers.len() + 1;
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| RequestError::HeaderName(number))?;
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| RequestError::HeaderValue(name.to_owned()))?;
        value.set_sensitive(true);
        self.headers.push(Header {
            name: parsed,
            value,
            is_from_environment: variable.is_some(),
        });
        Ok(self)
    }

    /// Sets the body. A `Content-Length` header has to match it.
    pub fn body(mut self, body: Bytes) -> Result<Self, RequestError> {
        let length = body.len().to_string();
        for header in &self.headers {
            if header.name == CONTENT_LENGTH && header.value.as_bytes() != length.as_bytes() {
                let name = header.name.to_string();
                return Err(RequestError::WrongLength(name));
            }
        }
        self.body = body;
        Ok(self)
    }

    /// Sets the observer of its redirects.
    #[must_use]
    pub fn observer(mut self, observer: Option<Arc<dyn RedirectObserver>>) -> Self {
        self.observer = observer;
        self
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// The host and port of the URL, without credentials.
    #[must_use]
    pub fn host(&self) -> String {
        host(&self.url)
    }

    /// Sets the timeout of the whole exchange, including the body.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether redirects are followed, up to a limit, or returned. They are by default.
    #[must_use]
    pub fn follow_redirects(mut self, follow: bool) -> Self {
        self.follow_redirects = follow;
        self
    }
}

/// The host and port of a URL, without credentials.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn parse(url: &str) -> Result<Url, UrlFault> {
    let check_length = |url: &str| match url.len() {
        0..=MAX_URL_BYTES => Ok(()),
        _ => Err(UrlFault::Length(MAX_URL_BYTES)),
    };
    check_length(url)?;
    let mut url = Url::parse(url).map_err(UrlFault::Form)?;
    if !is_web(&url) {
        return Err(UrlFault::Scheme);
    }
    url.set_fragment(None);
    // Encoding may have made it longer.
    check_length(url.as_str())?;
    Ok(url)
}

pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Whether a variable must not be used for a header. Ignores case.
fn is_protected(variable: &str) -> bool {
    let start = variable.get(..OWN_PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX))
        || PROTECTED
            .iter()
            .any(|name| variable.eq_ignore_ascii_case(name))
}

/// Returns the value of a header: `value`, followed by that of the variable.
fn with_variable(
    name: &str,
    value: &str,
    variable: &str,
    lookup: impl FnOnce(&str) -> Option<OsString>,
) -> Result<Vec<u8>, RequestError> {
    let unusable = |fault| RequestError::Variable {
        name: name.to_owned(),
        variable: variable.to_owned(),
        fault,
    };
    if is_protected(variable) {
        return Err(unusable(VariableFault::Protected));
    }
    let found = lookup(variable).ok_or_else(|| unusable(VariableFault::Unset))?;
    if found.is_empty() {
        return Err(unusable(VariableFault::Empty));
    }
    Ok([value.as_bytes(), found.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(request: Request, name: &str, value: &str) -> Result<Request, RequestError> {
        request.header(name, value, None, |_| None)
    }

    fn rejection(method: &str, url: &str) -> String {
        Request::new(method, url).unwrap_err().to_string()
    }

    #[test]
    fn invalid_requests_are_rejected_without_their_secrets() {
        assert_eq!(rejection("GE T", "http://h/"), "method is invalid");
        assert_eq!(rejection("", "http://h/"), "method is invalid");
        assert_eq!(rejection("CONNECT", "http://h/"), "method is invalid");
        for other in ["file:///etc/passwd", "ftp://h/", "data:,x", "ws://h/"] {
            let expected = "url is invalid: only http and https URLs are supported";
            assert_eq!(rejection("GET", other), expected, "{other}");
        }
        assert_eq!(
            rejection("GET", "/path?key=s3cret"),
            "url is invalid: relative URL without a base"
        );
        assert_eq!(
            rejection("GET", "http://u:s3cret@/"),
            "url is invalid: empty host"
        );
        assert_eq!(
            rejection("GET", "http://h:99999/?s3cret"),
            "url is invalid: invalid port number"
        );
        let long = format!("http://h/{}", "é".repeat(20_000));
        assert_eq!(
            rejection("GET", &long),
            "url is invalid: it is longer than 65000 bytes"
        );
    }

    #[test]
    fn header_errors_do_not_contain_values() {
        let request = || Request::new("GET", "http://h/").unwrap();
        let error =
            |name: &str, value: &str| with_header(request(), name, value).unwrap_err().to_string();
        assert_eq!(
            error("a b: s3cret", "x"),
            "header number 1 has a name that cannot be sent"
        );
        assert_eq!(
            error("a", "s3cret\r\nb: c"),
            "header a has a value that cannot be sent"
        );
        let lookup = |_: &str| Some(OsString::from("s3cret\n"));
        let from_variable = request().header("A", "", Some("V"), lookup);
        assert_eq!(
            from_variable.unwrap_err().to_string(),
            "header A has a value that cannot be sent"
        );
        let mut many = request();
        for _ in 0..MAX_HEADERS {
            many = with_header(many, "a", "b").unwrap();
        }
        let one_more = with_header(many, "a", "b").unwrap_err();
        assert_eq!(one_more.to_string(), "has more than 1024 headers");
    }

    #[test]
    fn wrong_content_length_is_rejected() {
        let request = Request::new("POST", "http://h/").unwrap();
        let request = with_header(request, "Content-Length", "3").unwrap();
        assert!(request.clone().body(Bytes::from_static(b"abc")).is_ok());
        let wrong = request.body(Bytes::from_static(b"abcd")).unwrap_err();
        let expected = "header content-length contradicts the length of the body";
        assert_eq!(wrong.to_string(), expected);
    }

    #[test]
    fn hosts_are_normalized_and_fragments_dropped() {
        let request = Request::new("GET", "HTTP://Bücher.example/a?b#c").unwrap();
        assert_eq!(request.url.as_str(), "http://xn--bcher-kva.example/a?b");
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let request = Request::new("GET", "http://h/").unwrap();
        let request = with_header(request, "a", "s3cret").unwrap();
        assert!(!format!("{request:?}").contains("s3cret"));
    }

    fn complete(variable: &str, value: Option<&str>) -> Result<Vec<u8>, String> {
        let lookup = |_: &str| value.map(OsString::from);
        with_variable("Authorization", "Bearer ", variable, lookup)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn variable_follows_the_value() {
        assert_eq!(complete("TOKEN", Some("abc")), Ok(b"Bearer abc".to_vec()));
    }

    #[test]
    fn unset_and_empty_variables_are_rejected() {
        let unset = "header Authorization requires executor environment variable TOKEN";
        assert_eq!(complete("TOKEN", None), Err(unset.to_owned()));
        let empty = "header Authorization requires a non-empty executor environment variable TOKEN";
        assert_eq!(complete("TOKEN", Some("")), Err(empty.to_owned()));
    }

    #[test]
    fn only_protected_names_are_rejected_in_any_case() {
        for name in PROTECTED {
            assert!(is_protected(name) && is_protected(&name.to_lowercase()));
            let rejection = complete(name, Some("secret")).unwrap_err();
            let text =
                format!("header Authorization cannot use executor environment variable {name}");
            assert_eq!(rejection, text);
            assert!(!is_protected(&format!("{name}_2")), "{name}_2");
            assert!(!is_protected(&name[1..]), "{}", &name[1..]);
        }
        for own in ["OUTPOST_TOKEN", "outpost_token", "Outpost_"] {
            assert!(is_protected(own), "{own}");
        }
        for other in ["OUTPOST", "MY_OUTPOST_TOKEN", "GITHUB_TOKEN", "", "ÖÖÖÖÖÖÖ"] {
            assert!(!is_protected(other), "{other}");
        }
    }
}

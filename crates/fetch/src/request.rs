//! Requests.

use std::{ffi::OsString, time::Duration};

use bytes::Bytes;
use reqwest::{
    Method, Url,
    header::{CONTENT_LENGTH, HeaderName, HeaderValue},
};

use crate::{RequestError, environment, error::UrlFault};

/// The limit of headers, above what servers read.
const MOST_HEADERS: usize = 1024;
/// The limit of a URL, in bytes.
const MOST_URL_BYTES: usize = 65_000;

/// The handling of redirects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Follows them, up to a limit.
    #[default]
    Follow,
    /// Returns the redirect itself.
    Stop,
}

/// A valid request.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Bytes,
    pub(crate) timeout: Option<Duration>,
    pub(crate) redirects: Redirects,
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
            redirects: Redirects::default(),
        })
    }

    /// Appends a header. Does not replace one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RequestError> {
        self.add(name, value.as_bytes(), false)?;
        Ok(self)
    }

    /// Appends a header whose value ends with that of a variable, which `lookup` returns.
    pub fn header_from_environment(
        mut self,
        name: &str,
        value: &str,
        variable: &str,
        lookup: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, RequestError> {
        let value = environment::completed(name, value, variable, lookup)?;
        self.add(name, &value, true)?;
        Ok(self)
    }

    /// Sets the body. A `Content-Length` header has to match it.
    pub fn body(mut self, body: Bytes) -> Result<Self, RequestError> {
        let length = body.len().to_string();
        for header in &self.headers {
            if header.name == CONTENT_LENGTH && header.value.as_bytes() != length.as_bytes() {
                let name = header.name.to_string();
                return Err(RequestError::WrongLength { name });
            }
        }
        self.body = body;
        Ok(self)
    }

    /// Sets the timeout of the whole exchange, including the body.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the handling of redirects.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    fn add(&mut self, name: &str, value: &[u8], secret: bool) -> Result<(), RequestError> {
        if self.headers.len() == MOST_HEADERS {
            let most = MOST_HEADERS;
            return Err(RequestError::TooManyHeaders { most });
        }
        let number = self.headers.len() + 1;
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(RequestError::HeaderName { number });
        };
        let Ok(mut value) = HeaderValue::from_bytes(value) else {
            let name = name.to_owned();
            return Err(RequestError::HeaderValue { name });
        };
        value.set_sensitive(true);
        self.headers.push(Header {
            name: parsed,
            value,
            is_from_environment: secret,
        });
        Ok(())
    }
}

fn parse(url: &str) -> Result<Url, UrlFault> {
    if url.len() > MOST_URL_BYTES {
        let most = MOST_URL_BYTES;
        return Err(UrlFault::Length { most });
    }
    let mut url = Url::parse(url).map_err(UrlFault::Form)?;
    if !is_web(&url) {
        return Err(UrlFault::Scheme);
    }
    url.set_fragment(None);
    if url.as_str().len() > MOST_URL_BYTES {
        let most = MOST_URL_BYTES;
        return Err(UrlFault::Length { most });
    }
    Ok(url)
}

pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(method: &str, url: &str) -> String {
        Request::new(method, url).unwrap_err().to_string()
    }

    #[test]
    fn invalid_requests_are_rejected_without_their_secrets() {
        assert_eq!(
            rejection("GE T", "http://h/"),
            "method is not one that can be sent"
        );
        assert_eq!(
            rejection("", "http://h/"),
            "method is not one that can be sent"
        );
        assert_eq!(
            rejection("CONNECT", "http://h/"),
            "method is not one that can be sent"
        );
        for other in ["file:///etc/passwd", "ftp://h/", "data:,x", "ws://h/"] {
            let expected = "url is invalid: only http and https can be asked for";
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
            |name: &str, value: &str| request().header(name, value).unwrap_err().to_string();
        assert_eq!(
            error("a b: s3cret", "x"),
            "header number 1 has a name that cannot be sent"
        );
        assert_eq!(
            error("a", "s3cret\r\nb: c"),
            "header a has a value that cannot be sent"
        );
        let lookup = |_: &str| Some(OsString::from("s3cret\n"));
        let from_variable = request().header_from_environment("A", "", "V", lookup);
        assert_eq!(
            from_variable.unwrap_err().to_string(),
            "header A has a value that cannot be sent"
        );
        let mut many = request();
        for _ in 0..MOST_HEADERS {
            many = many.header("a", "b").unwrap();
        }
        let one_more = many.header("a", "b").unwrap_err();
        assert_eq!(one_more.to_string(), "has more than 1024 headers");
    }

    #[test]
    fn wrong_content_length_is_rejected() {
        let request = Request::new("POST", "http://h/").unwrap();
        let request = request.header("Content-Length", "3").unwrap();
        assert!(request.clone().body(Bytes::from_static(b"abc")).is_ok());
        let wrong = request.body(Bytes::from_static(b"abcd")).unwrap_err();
        let expected = "header content-length does not tell the length of the body";
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
        let request = request.header("a", "s3cret").unwrap();
        assert!(!format!("{request:?}").contains("s3cret"));
    }
}

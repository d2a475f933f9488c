//! HTTP responses.

#[cfg(feature = "remote")]
use outpost_protocol::HttpHeader;

use super::HttpBody;

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

#[cfg(feature = "remote")]
pub(crate) fn pairs(headers: Vec<HttpHeader>) -> Vec<(String, String)> {
    let headers = headers.into_iter();
    headers.map(|header| (header.name, header.value)).collect()
}

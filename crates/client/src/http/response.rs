//! What came back.

use outpost_protocol::HttpHeader;

use super::HttpBody;

/// The response to an HTTP request.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The number in its first line.
    pub status: u16,
    /// Names, in lower case, and values. A name may come more than once.
    pub headers: Vec<(String, String)>,
    /// What is behind the headers.
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

    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) fn pairs(headers: Vec<HttpHeader>) -> Vec<(String, String)> {
    let headers = headers.into_iter();
    headers.map(|header| (header.name, header.value)).collect()
}

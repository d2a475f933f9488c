//! Redirect rules: the next URL, method and headers. Pure.

use reqwest::{
    Method, StatusCode, Url,
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION,
        CONTENT_TYPE, COOKIE, HOST, HeaderName, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
        WWW_AUTHENTICATE,
    },
};

use crate::{
    FetchError,
    request::{Header, is_web},
};

/// The limit of redirects per request.
pub(crate) const MAX_REDIRECTS: usize = 10;

/// Headers with credentials, which are dropped when the host changes.
const CREDENTIALS: [HeaderName; 5] = [
    AUTHORIZATION,
    COOKIE,
    HOST,
    PROXY_AUTHORIZATION,
    WWW_AUTHENTICATE,
];
/// Headers that describe the body, dropped together with it.
const ABOUT_THE_BODY: [HeaderName; 6] = [
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
];

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) keeps_body: bool,
    same_origin: bool,
}

/// Returns the next request after a response to `method` at `url`. Returns `None` if the response
/// is no redirect.
pub(crate) fn next_request(
    status: StatusCode,
    location: Option<&[u8]>,
    method: &Method,
    url: &Url,
) -> Result<Option<NextRequest>, FetchError> {
    let becomes_get = match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => *method != Method::HEAD,
        307 | 308 => false,
        _ => return Ok(None),
    };
    let location = location.and_then(|location| std::str::from_utf8(location).ok());
    let Some(mut next) = location.and_then(|location| url.join(location).ok()) else {
        return Ok(None);
    };
    if !is_web(&next) {
        return Err(FetchError::ForeignRedirect);
    }
    next.set_fragment(None);
    Ok(Some(NextRequest {
        method: if becomes_get {
            Method::GET
        } else {
            method.clone()
        },
        keeps_body: !becomes_get,
        same_origin: next.origin() == url.origin(),
        url: next,
    }))
}

impl NextRequest {
    /// Whether a header is sent with the next request.
    pub(crate) fn takes(&self, header: &Header) -> bool {
        let meant_for_this = self.same_origin
            || !(header.is_from_environment
                || CREDENTIALS.contains(&header.name)
                || header.name == "cookie2");
        meant_for_this && (self.keeps_body || !ABOUT_THE_BODY.contains(&header.name))
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn to(status: u16, method: Method, location: &str) -> Option<NextRequest> {
        let url = Url::parse("https://a.example/x/y?q").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        next_request(status, Some(location.as_bytes()), &method, &url).unwrap()
    }

    fn header(name: &'static str, is_from_environment: bool) -> Header {
        Header {
            name: HeaderName::from_static(name),
            value: HeaderValue::from_static("v"),
            is_from_environment,
        }
    }

    #[test]
    fn method_changes_as_browsers_do() {
        for (status, before, after) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (301, Method::PUT, Method::PUT),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
        ] {
            let next = to(status, before.clone(), "/z").unwrap();
            assert_eq!(next.method, after, "{status} {before}");
            assert_eq!(next.keeps_body, before == after, "{status} {before}");
            assert_eq!(next.url.as_str(), "https://a.example/z");
        }
    }

    #[test]
    fn other_responses_are_final() {
        for status in [200, 300, 304, 305, 404] {
            assert_eq!(to(status, Method::GET, "/z"), None, "{status}");
        }
        assert_eq!(
            to(302, Method::GET, "http://"),
            None,
            "a URL without a host"
        );
        let url = Url::parse("http://a.example/").unwrap();
        let nowhere = next_request(StatusCode::FOUND, None, &Method::GET, &url).unwrap();
        assert_eq!(nowhere, None);
        let file = next_request(StatusCode::FOUND, Some(b"file:///etc"), &Method::GET, &url);
        assert!(matches!(file, Err(FetchError::ForeignRedirect)));
    }

    #[test]
    fn credentials_stay_with_their_host() {
        let secrets = [
            header("authorization", false),
            header("cookie", false),
            header("host", false),
            header("x-api-key", true),
        ];
        let plain = header("x-request", false);
        let same = to(307, Method::POST, "../there").unwrap();
        assert!(secrets.iter().all(|secret| same.takes(secret)));
        for elsewhere in [
            "https://b.example/",
            "http://a.example/",
            "https://a.example:444/",
        ] {
            let next = to(307, Method::POST, elsewhere).unwrap();
            assert!(
                !secrets.iter().any(|secret| next.takes(secret)),
                "{elsewhere}"
            );
            assert!(next.takes(&plain), "{elsewhere}");
        }
    }

    #[test]
    fn body_headers_are_dropped_with_the_body() {
        let kind = header("content-type", false);
        assert!(to(307, Method::POST, "/z").unwrap().takes(&kind));
        assert!(!to(303, Method::POST, "/z").unwrap().takes(&kind));
    }
}

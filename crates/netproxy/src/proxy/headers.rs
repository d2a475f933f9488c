//! The head of a request: its target, and the headers that are passed on.

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::uri::Authority;
use hyper::{Method, Uri};

use crate::Host;

/// Headers that concern one connection only, see RFC 9110, 7.6.1. `Expect` is answered by the proxy.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::EXPECT,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The target that the first line of a request names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A host and a port.
    Named(Host, u16),
    /// The proxy itself: there is only a path.
    Proxy,
    /// None: another scheme or an invalid host.
    Invalid(&'static str),
}

impl Target {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let Some(authority) = uri.authority() else {
            return Target::Proxy;
        };
        let port = match (method, uri.scheme_str()) {
            (&Method::CONNECT, _) => authority.port_u16(),
            (_, Some("http")) if authority.port().is_none() => Some(80),
            (_, Some("http")) => authority.port_u16(),
            _ => return Target::Invalid("unsupported scheme: use CONNECT"),
        };
        match (Host::parse(authority.host()), port) {
            (Ok(host), Some(port)) if port > 0 => Target::Named(host, port),
            _ => Target::Invalid("invalid host or port"),
        }
    }
}

/// Returns whether the `Host` header, if there is one, names the target. A program that sends another one
/// could make a server behind the same address answer for a host that isn't allowed.
pub(super) fn host_matches(headers: &HeaderMap, host: &Host, port: u16) -> bool {
    let mut values = headers.get_all(header::HOST).iter();
    let (value, further) = (values.next(), values.next());
    let Some(value) = value else { return true };
    let Ok(authority) = value.to_str().unwrap_or_default().parse::<Authority>() else {
        return false;
    };
    let same_port = match authority.port() {
        Some(other) => other.as_u16() == port,
        None => true,
    };
    further.is_none() && same_port && Host::parse(authority.host()).as_ref() == Ok(host)
}

/// Removes the headers that concern one connection only.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // `Connection` may not list headers that frame the message or are checked.
        .filter(|name| ![header::HOST, header::CONTENT_LENGTH].contains(name))
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn target(method: &Method, uri: &str) -> Target {
        Target::of(method, &uri.parse().expect("a URI"))
    }

    fn named(host: &str, port: u16) -> Target {
        Target::Named(Host::parse(host).expect("a host"), port)
    }

    #[test]
    fn first_line_names_the_target() {
        let get = |uri| target(&Method::GET, uri);
        let connect = |uri| target(&Method::CONNECT, uri);
        assert_eq!(get("http://A.test/x"), named("a.test", 80));
        assert_eq!(get("http://a.test.:8080"), named("a.test", 8080));
        assert_eq!(
            get("http://allowed.test@evil.test/"),
            named("evil.test", 80)
        );
        assert_eq!(get("http://[::1]/"), named("::1", 80));
        assert_eq!(get("/x"), Target::Proxy);
        assert_eq!(connect("a.test:443"), named("a.test", 443));
        assert_eq!(connect("[::1]:22"), named("::1", 22));
        for invalid in ["https://a.test/", "ftp://a.test/", "http://a.test:0/"] {
            assert!(matches!(get(invalid), Target::Invalid(_)), "{invalid}");
        }
        assert!(matches!(connect("a.test"), Target::Invalid(_)));
    }

    #[test]
    fn other_or_several_host_headers_do_not_match() {
        let matches = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::HOST, HeaderValue::from_static(value));
            }
            host_matches(&headers, &Host::parse("a.test").expect("a host"), 80)
        };
        assert!(matches(&[]) && matches(&["a.test"]) && matches(&["A.test.:80"]));
        for values in [
            &["b.test"][..],
            &["a.test:81"],
            &["a.test", "b.test"],
            &["a.test", "a.test"],
            &[""],
            &["a.test, b.test"],
            &["http://a.test/"],
        ] {
            assert!(!matches(values), "{values:?}");
        }
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "x-one, close, content-length, host"),
            ("keep-alive", "1"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("host", "a.test"),
            ("content-length", "3"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-two"]);
    }
}

//! The check of the `Host` header, against DNS rebinding.

use std::net::IpAddr;

use hyper::{
    Request,
    header::{self, HeaderValue},
    http::uri::Authority,
};

/// Whether a request names this host: `localhost`, a loopback address or one of `allowed`, with any
/// port. A request without a `Host` names none.
pub(crate) fn is_allowed<B>(request: &Request<B>, allowed: &[String]) -> bool {
    let mut headers = request.headers().get_all(header::HOST).iter().peekable();
    let is_named = headers.peek().is_some();
    let parse = |value: &HeaderValue| Authority::try_from(value.as_bytes()).ok();
    let are_local =
        headers.all(|value| parse(value).is_some_and(|authority| is_local(&authority, allowed)));
    // A request target with a host takes precedence over the header.
    let target = request.uri().authority();
    is_named && are_local && target.is_none_or(|authority| is_local(authority, allowed))
}

fn is_local(authority: &Authority, allowed: &[String]) -> bool {
    if authority.as_str().contains('@') {
        return false;
    }
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) if address.to_canonical().is_loopback() => return true,
        _ => {}
    }
    let name = host.trim_end_matches('.');
    let names = allowed.iter().map(String::as_str);
    names
        .chain(["localhost"])
        .any(|allowed| name.eq_ignore_ascii_case(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &[&str], target: &str) -> bool {
        let allowed = ["build.example".to_owned(), "192.0.2.7".to_owned()];
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        is_allowed(&request.body(()).unwrap(), &allowed)
    }

    #[test]
    fn loopback_and_configured_names_are_allowed() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "localhost.:7777",
            "127.0.0.1",
            "127.0.0.1:40123",
            "127.1.2.3",
            "[::1]",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "build.example",
            "Build.Example:443",
            "192.0.2.7:1",
        ] {
            assert!(check(&[host], "/"), "{host}");
        }
        assert!(check(&["localhost"], "http://127.0.0.1/"));
    }

    #[test]
    fn other_names_are_rejected() {
        for host in [
            "evil.example",
            "evil.example:7777",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "build.example.evil.example",
            "192.0.2.8",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "localhost@evil.example",
            "evil.example@localhost",
            "",
        ] {
            assert!(!check(&[host], "/"), "{host}");
        }
        assert!(!check(&[], "/"), "none");
        assert!(!check(&["localhost", "evil.example"], "/"), "two");
        assert!(!check(&["localhost"], "http://evil.example/"), "target");
    }
}

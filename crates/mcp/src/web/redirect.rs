//! Where a server points to, as far as what is meant for it may be sent there.

use http::Uri;

/// The address to ask instead of this one. None if there is nothing to follow:
/// the response is one, or it leads to another origin, which has no business with
/// the tokens and headers of this one, or it would make another request of it.
pub(super) fn next(asked: &str, status: u16, location: Option<&str>) -> Option<String> {
    if !matches!(status, 307 | 308) {
        return None;
    }
    let asked: Uri = asked.parse().ok()?;
    let (scheme, authority) = (asked.scheme_str()?, asked.authority()?);
    let location = location?;
    let location = match location {
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => location.to_owned(),
    };
    let there: Uri = location.parse().ok()?;
    (origin(&asked)? == origin(&there)?).then_some(location)
}

fn origin(uri: &Uri) -> Option<(String, String, u16)> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let port = uri.port_u16().unwrap_or(port);
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_origin_is_asked() {
        let from = |location| next("https://example.com/mcp", 307, Some(location));
        for (location, there) in [
            ("/mcp/", "https://example.com/mcp/"),
            ("//EXAMPLE.com/x", "https://EXAMPLE.com/x"),
            ("https://example.com:443/x?y", "https://example.com:443/x?y"),
        ] {
            assert_eq!(from(location).as_deref(), Some(there));
        }
        for elsewhere in [
            "http://example.com/mcp",
            "https://example.com:8443/mcp",
            "https://evil.example/mcp",
            "https://example.com@evil.example/mcp",
            "//evil.example/mcp",
            "mcp/",
            "",
        ] {
            let followed = from(elsewhere);
            assert!(followed.is_none(), "{elsewhere}: {followed:?}");
        }
    }

    #[test]
    fn only_what_repeats_the_request_is_followed() {
        for status in [200, 301, 302, 303, 404] {
            assert_eq!(next("http://a/mcp", status, Some("/x")), None);
        }
        assert_eq!(next("http://a/mcp", 308, None), None);
    }
}

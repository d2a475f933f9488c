//! Decides which redirects are followed.

use http::Uri;

/// Returns the URL to request instead, or `None` to use the response as it is.
///
/// Only 307 and 308 are followed, because they repeat the request unchanged, and only
/// within the origin: another one must not receive the tokens and headers.
pub(super) fn next(requested: &str, status: u16, location: Option<&str>) -> Option<String> {
    if !matches!(status, 307 | 308) {
        return None;
    }
    let requested: Uri = requested.parse().ok()?;
    let (scheme, authority) = (requested.scheme_str()?, requested.authority()?);
    let location = location?;
    let location = match location {
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => location.to_owned(),
    };
    let target: Uri = location.parse().ok()?;
    (origin(&requested)? == origin(&target)?).then_some(location)
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
    fn follows_only_within_the_origin() {
        let from = |location| next("https://example.com/mcp", 307, Some(location));
        for (location, target) in [
            ("/mcp/", "https://example.com/mcp/"),
            ("//EXAMPLE.com/x", "https://EXAMPLE.com/x"),
            ("https://example.com:443/x?y", "https://example.com:443/x?y"),
        ] {
            assert_eq!(from(location).as_deref(), Some(target));
        }
        for location in [
            "http://example.com/mcp",
            "https://example.com:8443/mcp",
            "https://evil.example/mcp",
            "https://example.com@evil.example/mcp",
            "//evil.example/mcp",
            "mcp/",
            "",
        ] {
            let followed = from(location);
            assert!(followed.is_none(), "{location}: {followed:?}");
        }
    }

    #[test]
    fn follows_only_statuses_that_repeat_the_request() {
        for status in [200, 301, 302, 303, 404] {
            assert_eq!(next("http://a/mcp", status, Some("/x")), None);
        }
        assert_eq!(next("http://a/mcp", 308, None), None);
    }
}

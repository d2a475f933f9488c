//! Finds the bearer token of a WebSocket upgrade.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::header::{self, HeaderMap};

use super::Rejection;

/// The prefix of the subprotocol that carries a token. Browsers can set no other header.
pub(crate) const BEARER_PROTOCOL: &str = "outpost.bearer.";

/// Returns the token of the `Authorization` header or of the subprotocol.
pub(crate) fn find_token(headers: &HeaderMap) -> Result<String, Rejection> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(value) = values.next() {
        let value = value.to_str().map_err(|_| Rejection::InvalidHeader)?;
        let (scheme, token) = value.split_once(' ').ok_or(Rejection::InvalidHeader)?;
        let token = token.trim();
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        if !is_bearer || token.is_empty() || values.next().is_some() {
            return Err(Rejection::InvalidHeader);
        }
        return Ok(token.to_owned());
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let encoded = offered
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|protocol| protocol.trim().strip_prefix(BEARER_PROTOCOL))
        .ok_or(Rejection::MissingToken)?;
    let decoded = URL_SAFE_NO_PAD.decode(encoded).ok();
    decoded
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(Rejection::InvalidToken)
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn find(all: &[(HeaderName, &'static str)]) -> Result<String, Rejection> {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        find_token(&headers)
    }

    #[test]
    fn token_is_found_in_the_header_in_any_case() {
        for value in ["Bearer abc", "bearer abc", "BEARER   abc "] {
            assert_eq!(find(&[(header::AUTHORIZATION, value)]).unwrap(), "abc");
        }
    }

    #[test]
    fn other_headers_are_rejected() {
        for value in ["abc", "Basic abc", "Bearer", "Bearer ", ""] {
            let found = find(&[(header::AUTHORIZATION, value)]);
            assert_eq!(found, Err(Rejection::InvalidHeader), "{value:?}");
        }
        let two = [
            (header::AUTHORIZATION, "Bearer a"),
            (header::AUTHORIZATION, "Bearer b"),
        ];
        assert_eq!(find(&two), Err(Rejection::InvalidHeader));
        assert_eq!(find(&[]), Err(Rejection::MissingToken));
    }

    #[test]
    fn token_is_found_in_the_subprotocol() {
        let protocols = "outpost.v1, outpost.bearer.YWJj";
        let found = find(&[(header::SEC_WEBSOCKET_PROTOCOL, protocols)]);
        assert_eq!(found.unwrap(), "abc");
        for protocols in ["outpost.bearer.!", "outpost.bearer._w"] {
            let found = find(&[(header::SEC_WEBSOCKET_PROTOCOL, protocols)]);
            assert_eq!(found, Err(Rejection::InvalidToken));
        }
        let found = find(&[(header::SEC_WEBSOCKET_PROTOCOL, "outpost.v1")]);
        assert_eq!(found, Err(Rejection::MissingToken));
    }
}

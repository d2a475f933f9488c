//! What is sent along with every message.

use std::{collections::HashMap, ffi::OsString};

use http::{HeaderName, HeaderValue};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::config::Endpoint;

/// Why a server can't even be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// There is no token.
    #[error("variable {name}, which has the bearer token, is not set")]
    NoToken {
        /// The variable.
        name: String,
    },
    /// It can't be sent.
    #[error("the value of header {name} can't be sent")]
    Header {
        /// The header.
        name: String,
    },
}

/// Headers and token, with the values of variables as `variable` finds them.
/// A header whose variable isn't set is left out; a token has to be there.
pub(super) fn config(
    endpoint: &Endpoint,
    variable: impl Fn(&str) -> Option<OsString>,
    event_bytes: usize,
) -> Result<StreamableHttpClientTransportConfig, EndpointError> {
    let mut headers = HashMap::new();
    for (name, value) in &endpoint.headers {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    for (name, named) in &endpoint.env_headers {
        if let Some(value) = variable(named) {
            let value = value.into_string().unwrap_or_else(|_| "\0".to_owned());
            let (name, value) = header(name, &value)?;
            headers.insert(name, value);
        }
    }
    let token = match &endpoint.bearer_token_env_var {
        None => None,
        Some(name) => {
            let value = variable(name).and_then(|value| value.into_string().ok());
            let value = value.filter(|value| !value.is_empty());
            let missing = || EndpointError::NoToken { name: name.clone() };
            Some(value.ok_or_else(missing)?)
        }
    };
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    config.custom_headers = headers;
    config.auth_header = token;
    config.max_sse_event_size = event_bytes;
    Ok(config)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), EndpointError> {
    let wrong = || EndpointError::Header {
        name: name.to_owned(),
    };
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint {
            url: "http://h/mcp".to_owned(),
            headers: BTreeMap::from([("X-A".to_owned(), "a".to_owned())]),
            env_headers: BTreeMap::from([
                ("X-B".to_owned(), "B".to_owned()),
                ("X-C".to_owned(), "C".to_owned()),
            ]),
            bearer_token_env_var: Some("TOKEN".to_owned()),
        }
    }

    #[test]
    fn values_come_from_the_configuration_and_from_here() {
        let variable = |name: &str| (name != "C").then(|| OsString::from(format!("v{name}")));
        let config = config(&endpoint(), variable, 1).unwrap();
        assert_eq!(config.auth_header.as_deref(), Some("vTOKEN"));
        let mut headers: Vec<_> = config
            .custom_headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        assert_eq!(headers, [("x-a", "a"), ("x-b", "vB")]);
        // Whoever logs the configuration tells no secret of a header.
        assert!(!format!("{:?}", config.custom_headers).contains("vB"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_without_its_value() {
        let missing = config(&endpoint(), |_| None, 1).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "variable TOKEN, which has the bearer token, is not set"
        );
        let broken = config(&endpoint(), |_| Some("se\ncret".into()), 1).unwrap_err();
        assert_eq!(broken.to_string(), "the value of header X-B can't be sent");
    }
}

//! Builds the headers and the bearer token of a server's requests.

use std::{collections::HashMap, ffi::OsString};

use http::{HeaderName, HeaderValue};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::config::Endpoint;

/// Reasons why the configured headers or token are unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestConfigError {
    /// The variable of the bearer token is unset, empty, or not Unicode.
    #[error("cannot read the bearer token: environment variable {name} is not set")]
    NoToken {
        /// The name of the variable.
        name: String,
    },
    /// The value has characters that HTTP doesn't allow.
    #[error("the value of header {name} is not a valid HTTP header value")]
    Header {
        /// The name of the header.
        name: String,
    },
}

/// Builds the transport configuration. `variable` looks up environment variables.
///
/// A header whose variable is unset is omitted; a missing token is an error.
pub(super) fn request_config(
    endpoint: &Endpoint,
    variable: impl Fn(&str) -> Option<OsString>,
    event_bytes: usize,
) -> Result<StreamableHttpClientTransportConfig, RequestConfigError> {
    let mut headers = HashMap::new();
    for (name, value) in &endpoint.headers {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    for (name, variable_name) in &endpoint.env_headers {
        if let Some(value) = variable(variable_name) {
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
            let missing = || RequestConfigError::NoToken { name: name.clone() };
            Some(value.ok_or_else(missing)?)
        }
    };
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    config.custom_headers = headers;
    config.auth_header = token;
    config.max_sse_event_size = event_bytes;
    Ok(config)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), RequestConfigError> {
    let invalid = || RequestConfigError::Header {
        name: name.to_owned(),
    };
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
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
    fn takes_values_from_config_and_environment() {
        let variable = |name: &str| (name != "C").then(|| OsString::from(format!("v{name}")));
        let config = request_config(&endpoint(), variable, 1).unwrap();
        assert_eq!(config.auth_header.as_deref(), Some("vTOKEN"));
        let mut headers: Vec<_> = config
            .custom_headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        assert_eq!(headers, [("x-a", "a"), ("x-b", "vB")]);
        // Header values are marked sensitive, so `Debug` doesn't print them.
        assert!(!format!("{:?}", config.custom_headers).contains("vB"));
    }

    #[test]
    fn errors_name_the_header_or_variable_but_no_value() {
        let missing = request_config(&endpoint(), |_| None, 1).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "cannot read the bearer token: environment variable TOKEN is not set"
        );
        let invalid = request_config(&endpoint(), |_| Some("se\ncret".into()), 1).unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "the value of header X-B is not a valid HTTP header value"
        );
    }
}

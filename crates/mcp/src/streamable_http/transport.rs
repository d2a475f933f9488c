//! The rmcp transport to a server over HTTP.

use std::{collections::HashMap, ffi::OsString, sync::Arc};

use http::{HeaderName, HeaderValue};
use outpost_client::{Error, Executor};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use super::client::ExecutorHttpClient;
use crate::{EndReason, Limits, ServerDiagnostics, config::Endpoint};

/// Transports the messages of a server over streamable HTTP.
pub(crate) struct HttpTransport {
    inner: StreamableHttpClientTransport<ExecutorHttpClient>,
    diagnostics: Arc<ServerDiagnostics>,
}

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

impl HttpTransport {
    /// Returns a transport that sends its requests from `executor`.
    pub(crate) fn new(
        endpoint: &Endpoint,
        executor: Arc<dyn Executor>,
        limits: &Limits,
    ) -> Result<Self, RequestConfigError> {
        let message_bytes = limits.message_bytes;
        let config = request_config(endpoint, |name| std::env::var_os(name), message_bytes)?;
        let diagnostics = Arc::<ServerDiagnostics>::default();
        let client = ExecutorHttpClient {
            executor,
            diagnostics: Arc::clone(&diagnostics),
            message_bytes,
        };
        Ok(HttpTransport {
            inner: StreamableHttpClientTransport::with_client(client, config),
            diagnostics,
        })
    }

    pub(crate) fn diagnostics(&self) -> Arc<ServerDiagnostics> {
        Arc::clone(&self.diagnostics)
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = StreamableHttpError<Error>;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // A lost executor doesn't come back, but the SDK would retry for ever.
        let message = tokio::select! {
            biased;
            _ = self.diagnostics.ended() => None,
            message = self.inner.receive() => message,
        };
        if message.is_none() {
            let reason = "the connection to the server ended".into();
            self.diagnostics.set_end_reason(EndReason::Lost { reason });
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.diagnostics.set_end_reason(EndReason::Closed);
        self.inner.close().await
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.diagnostics.set_end_reason(EndReason::Closed);
    }
}

/// Builds the transport configuration. `variable` looks up environment variables.
///
/// A header whose variable is unset is omitted; a missing token is an error.
fn request_config(
    endpoint: &Endpoint,
    variable: impl Fn(&str) -> Option<OsString>,
    event_bytes: usize,
) -> Result<StreamableHttpClientTransportConfig, RequestConfigError> {
    let mut headers = HashMap::new();
    let mut add = |name: &String, value: &str| {
        let invalid = || RequestConfigError::Header { name: name.clone() };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(header, value);
        Ok(())
    };
    for (name, value) in &endpoint.headers {
        add(name, value)?;
    }
    for (name, variable_name) in &endpoint.env_headers {
        if let Some(value) = variable(variable_name) {
            // NUL is invalid in a header, like a value that is not Unicode.
            add(name, value.to_str().unwrap_or("\0"))?;
        }
    }
    let token = endpoint.bearer_token_env_var.as_ref().map(|name| {
        let value = variable(name).and_then(|value| value.into_string().ok());
        let value = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| RequestConfigError::NoToken { name: name.clone() })
    });
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    config.auth_header = token.transpose()?;
    config.custom_headers = headers;
    config.max_sse_event_size = event_bytes;
    Ok(config)
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

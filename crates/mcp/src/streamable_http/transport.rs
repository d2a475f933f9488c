//! The rmcp transport to a server over HTTP.

use std::sync::Arc;

use outpost_client::{Error, Executor};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport, streamable_http_client::StreamableHttpError,
    },
};

use super::{RequestConfigError, client::ExecutorHttpClient, request_config::request_config};
use crate::{EndReason, Limits, ServerDiagnostics, config::Endpoint};

/// Transports the messages of a server over streamable HTTP.
pub(crate) struct HttpTransport {
    inner: StreamableHttpClientTransport<ExecutorHttpClient>,
    diagnostics: ServerDiagnostics,
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
        let diagnostics = ServerDiagnostics::new();
        let client = ExecutorHttpClient {
            executor,
            diagnostics: diagnostics.clone(),
            message_bytes,
        };
        Ok(HttpTransport {
            inner: StreamableHttpClientTransport::with_client(client, config),
            diagnostics,
        })
    }

    pub(crate) fn diagnostics(&self) -> ServerDiagnostics {
        self.diagnostics.clone()
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

//! A server over HTTP as a transport of the SDK.

use std::sync::Arc;

use outpost_client::{Error, Place};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport, streamable_http_client::StreamableHttpError,
    },
};

use super::{EndpointError, client::Web, endpoint};
use crate::{Account, Fault, Limits, config::Endpoint};

/// The messages of a server over HTTP.
pub(crate) struct WebTransport {
    inner: StreamableHttpClientTransport<Web>,
    account: Account,
}

impl WebTransport {
    /// Speaks with this server from this place.
    pub(crate) fn new(
        endpoint: &Endpoint,
        place: Arc<dyn Place>,
        limits: &Limits,
    ) -> Result<Self, EndpointError> {
        let message_bytes = limits.message_bytes;
        let config = endpoint::config(endpoint, |name| std::env::var_os(name), message_bytes)?;
        let account = Account::new();
        let web = Web {
            place,
            account: account.clone(),
            message_bytes,
        };
        Ok(WebTransport {
            inner: StreamableHttpClientTransport::with_client(web, config),
            account,
        })
    }

    pub(crate) fn account(&self) -> Account {
        self.account.clone()
    }
}

impl Transport<RoleClient> for WebTransport {
    type Error = StreamableHttpError<Error>;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // A place that is lost stays lost, and the SDK would go on asking it.
        let message = tokio::select! {
            biased;
            _ = self.account.ended() => None,
            message = self.inner.receive() => message,
        };
        if message.is_none() {
            let reason = "the connection to the server has ended".into();
            self.account.end(Fault::Lost { reason });
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.account.end(Fault::Closed);
        self.inner.close().await
    }
}

impl Drop for WebTransport {
    fn drop(&mut self) {
        self.account.end(Fault::Closed);
    }
}

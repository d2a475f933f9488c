//! A server with a `wss://` listener, and a tunnel through which plain clients reach it.

use outpost_testkit::http_client::{Response, UPGRADE, get};
use outpost_testkit::{Client, Server, ServerCommand};
use tempfile::TempDir;

use super::certificates::{Authority, TlsClient, TlsTunnel, tls_arguments};
use crate::outpost;

/// A server with TLS. All of its clients use TLS.
pub(super) struct TlsServer {
    pub(super) server: Server,
    pub(super) tunnel: TlsTunnel,
    pub(super) authority: Authority,
    /// Contains its certificate and its key.
    pub(super) files: TempDir,
}

impl TlsServer {
    /// Starts a server with these arguments.
    pub(super) async fn start(args: &[&str]) -> Self {
        Self::start_command(outpost().args(args)).await
    }

    /// Starts a server with more settings.
    pub(super) async fn start_command(command: ServerCommand) -> Self {
        let files = tempfile::tempdir().expect("a directory");
        let authority = Authority::new();
        authority.for_localhost().write(files.path());
        let tls = tls_arguments(files.path());
        let command = command.args(&tls.each_ref().map(String::as_str));
        let server = command.listen("wss://127.0.0.1:0").start().await;
        let tunnel = TlsTunnel::to(&server, TlsClient::trusting(&authority)).await;
        TlsServer {
            server,
            tunnel,
            authority,
            files,
        }
    }

    /// Requests an upgrade with these headers.
    pub(super) async fn upgrade(&self, headers: &[&str]) -> Response {
        get(self.tunnel.address(), "/", &[UPGRADE, headers].concat()).await
    }

    /// Requests an upgrade with a token. Returns the status and the text.
    pub(super) async fn upgrade_with(&self, token: &str) -> (u16, String) {
        let header = format!("Authorization: Bearer {token}");
        let response = self.upgrade(&[&header]).await;
        (response.status, response.body)
    }

    /// Connects with a token, without a handshake.
    pub(super) async fn connect(&self, token: &str) -> Client {
        let url = self.tunnel.url();
        self.server.connect_to_with_token(&url, token).await
    }

    /// Connects with a token and completes the handshake.
    pub(super) async fn client(&self, token: &str) -> Client {
        let client = self.connect(token).await;
        client.handshake().await;
        client
    }
}

/// The response to a client that is not authenticated.
pub(super) fn rejected(text: &str) -> (u16, String) {
    (401, text.to_owned())
}

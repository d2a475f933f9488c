//! A server whose responses a test writes.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::tungstenite::Message;

/// Returns the messages that a server sends after it has received one.
type Respond = dyn Fn(&Value) -> Vec<Message> + Send + Sync;

/// A server on a unix socket that sends what a function returns for each received message. A close
/// frame ends the connection. Dropping it closes all connections.
#[derive(Debug)]
pub struct ScriptedServer {
    dir: TempDir,
    accepting: JoinHandle<()>,
}

impl ScriptedServer {
    /// Starts a server. `respond` gets each received message.
    pub fn start(respond: impl Fn(&Value) -> Vec<Message> + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("cannot create a directory: {error}"));
        let listener = UnixListener::bind(dir.path().join("sock"));
        let listener = listener.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        let respond: Arc<Respond> = Arc::new(respond);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, Arc::clone(&respond)));
            }
        });
        ScriptedServer { dir, accepting }
    }

    /// The URL of its socket.
    pub fn url(&self) -> String {
        format!("unix://{}/sock", self.dir.path().display())
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(socket: UnixStream, respond: Arc<Respond>) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(socket).await else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let received: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{text} is not JSON: {error}"));
        for answer in respond(&received) {
            if socket.send(answer).await.is_err() {
                return;
            }
        }
    }
}

//! A client on an in-memory connection.

use std::{io, pin::pin, time::Duration};

use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions, sandbox::policy::BuiltIn};
use outpost_rpc::{FrameBuffer, Framing, Inbound, ReadHalf, Received, Role, WriteHalf};
use outpost_server::{Host, Peer as PeerKind, Server, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, duplex, split};

/// Longer than any timeout under test.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(3600);

pub(crate) fn server(settings: Settings) -> Server {
    server_with(settings, Limits::default())
}

/// Creates a server that runs commands unsandboxed by default.
pub(crate) fn server_with(mut settings: Settings, limits: Limits) -> Server {
    settings.profiles.default = BuiltIn::DangerFullAccess.name().to_owned();
    let spawner = Spawner::new(SpawnerOptions::default()).expect("threads can be started");
    let host = Host::detect(spawner.tree_kind());
    let engine = Engine::new(spawner, limits);
    Server::new(engine, host, settings)
}

/// A client that sends frames and does not response pings.
pub(crate) struct Peer {
    inbound: Inbound,
    outgoing: WriteHalf,
    frames: FrameBuffer,
    next_id: i64,
}

impl Peer {
    pub(crate) fn connect(server: &Server) -> Peer {
        Peer::connect_as(server, PeerKind::Unverified)
    }

    pub(crate) fn connect_as(server: &Server, kind: PeerKind) -> Peer {
        let (ours, theirs) = duplex(64 * 1024);
        let (read, write) = split(theirs);
        let server = server.clone();
        tokio::spawn(async move {
            server
                .serve_websocket(Box::new(read), Box::new(write), kind)
                .await;
        });
        let (read, write) = split(ours);
        Peer::over(Box::new(read), Box::new(write))
    }

    /// A client on an open WebSocket.
    pub(crate) fn over(read: ReadHalf, outgoing: WriteHalf) -> Peer {
        let framing = Framing::WebSocket(Role::Client);
        Peer {
            inbound: Inbound::new(read, framing, 1 << 20, None),
            outgoing,
            frames: FrameBuffer::new(framing),
            next_id: 0,
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.frames.message(text.as_bytes());
        self.outgoing
            .write_all(self.frames.as_bytes())
            .await
            .expect("the server reads");
        self.frames.clear();
    }

    /// Sends a message of any bytes. Fails if the server has closed the connection. Reads
    /// and drops responses meanwhile, so that neither side blocks.
    pub(crate) async fn try_send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.frames.message(payload);
        let bytes = self.frames.as_bytes().to_vec();
        self.frames.clear();
        self.try_send_raw(&bytes).await
    }

    /// Sends raw bytes, which need not be a frame.
    pub(crate) async fn try_send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Peer {
            inbound, outgoing, ..
        } = self;
        let mut sending = pin!(outgoing.write_all(bytes));
        loop {
            tokio::select! {
                sent = &mut sending => return sent,
                received = inbound.next() => {
                    if !matches!(received, Ok(Some(_))) {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
            }
        }
    }

    /// Receives the next message or frame; `None` when the server closes the connection.
    pub(crate) async fn received(&mut self) -> Option<Received> {
        tokio::time::timeout(RECEIVE_TIMEOUT, self.inbound.next())
            .await
            .expect("something arrives")
            .unwrap_or(None)
    }

    /// Receives the next message. Skips pings.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            match self.received().await {
                Some(Received::Message(text)) => {
                    return serde_json::from_slice(&text).expect("messages are JSON");
                }
                Some(Received::Ping(_)) => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// Calls a method and returns the whole response. A client has a name if `initialize` gives none.
    pub(crate) async fn call(&mut self, method: &str, mut params: Value) -> Value {
        self.next_id += 1;
        if method == "initialize" && params.get("clientInfo").is_none() {
            params["clientName"] = "t".into();
        }
        self.call_with_id(json!(self.next_id), method, params).await
    }

    /// Calls a method with the given request id.
    pub(crate) async fn call_with_id(&mut self, id: Value, method: &str, params: Value) -> Value {
        let request = json!({ "id": id, "method": method, "params": params });
        let sent = self.try_send(request.to_string().as_bytes()).await;
        sent.expect("the server reads");
        loop {
            let message = self.message().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Performs the handshake and returns the session id.
    pub(crate) async fn initialize(&mut self, params: Value) -> String {
        let response = self.call("initialize", params).await;
        self.send(&json!({ "method": "initialized" })).await;
        response["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session: {response}"))
            .to_owned()
    }
}

//! The other end of an in-memory connection.

use std::{io, pin::pin, time::Duration};

use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions, sandbox::policy::BuiltIn};
use outpost_rpc::{Frames, Framing, Inbound, Received, Role};
use outpost_server::{Host, Peer as Who, Server, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, WriteHalf, duplex, split};

/// More than any of the times that are tested.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(crate) fn server(settings: Settings) -> Server {
    server_with(settings, Limits::default())
}

/// Nothing that runs here is confined unless its client says so.
pub(crate) fn server_with(mut settings: Settings, limits: Limits) -> Server {
    settings.profiles.default = BuiltIn::DangerFullAccess.name().to_owned();
    let spawner = Spawner::new(SpawnerOptions::default()).expect("threads can be started");
    let host = Host::look(spawner.tree_kind());
    let engine = Engine::new(spawner, limits);
    Server::new(engine, host, settings)
}

/// A client that speaks frames, and answers pings only when told to.
pub(crate) struct Peer {
    inbound: Inbound,
    outgoing: WriteHalf<DuplexStream>,
    frames: Frames,
    next_id: i64,
}

impl Peer {
    pub(crate) fn connect(server: &Server) -> Peer {
        Peer::connect_as(server, Who::Anybody)
    }

    pub(crate) fn connect_as(server: &Server, who: Who) -> Peer {
        let (ours, theirs) = duplex(64 * 1024);
        let (read, write) = split(theirs);
        let server = server.clone();
        tokio::spawn(async move {
            server
                .serve_websocket(Box::new(read), Box::new(write), who)
                .await;
        });
        let (read, outgoing) = split(ours);
        let framing = Framing::WebSocket(Role::Client);
        Peer {
            inbound: Inbound::new(Box::new(read), framing, 1 << 20, None),
            outgoing,
            frames: Frames::new(framing),
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

    /// Sends a message of any bytes; fails if the server has hung up. What it
    /// answers is read meanwhile, or nobody could go on.
    pub(crate) async fn try_send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.frames.message(payload);
        let bytes = self.frames.as_bytes().to_vec();
        self.frames.clear();
        self.try_send_raw(&bytes).await
    }

    /// Sends bytes that needn't be a frame.
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

    /// What comes next, whatever it is; `None` when the server hangs up.
    pub(crate) async fn received(&mut self) -> Option<Received> {
        tokio::time::timeout(PATIENCE, self.inbound.next())
            .await
            .expect("something comes")
            .unwrap_or(None)
    }

    /// The next message; pings in between go unanswered.
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

    /// Calls a method and gives the whole answer.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        self.call_with_id(json!(self.next_id), method, params).await
    }

    /// The same with an id of the caller's choice.
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

    /// Shakes hands and gives the session's id.
    pub(crate) async fn initialize(&mut self, params: Value) -> String {
        let answer = self.call("initialize", params).await;
        self.send(&json!({ "method": "initialized" })).await;
        answer["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .to_owned()
    }
}

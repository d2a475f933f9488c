//! A simulated server that a test controls step by step.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use outpost_client::{
    DialError, Dialer, Executor as _, Process, RemoteExecutor, RemoteOptions, Start, Transport,
};
use outpost_rpc::{FrameBuffer, Framing, Inbound, Received, Role};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, DuplexStream, WriteHalf, duplex, split},
    sync::mpsc,
};

pub(crate) const SESSION: &str = "0f0f0f0f-secret-session";

/// Timeout of everything that a test waits for, in paused time.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Response of a server without extensions to `initialize`.
pub(crate) fn old_server() -> Value {
    json!({"sessionId": SESSION})
}

/// Response of a server with all extensions to `initialize`.
pub(crate) fn full_server() -> Value {
    json!({"sessionId": SESSION, "capabilities": {
        "acked": true, "closeStdin": true, "resize": true, "signals": true, "timeouts": true,
        "processList": true, "takeover": true, "terminateTree": true,
    }})
}

/// The server's side of all connections.
pub(crate) struct Sim {
    connections: mpsc::Receiver<SimConnection>,
    dialer: Arc<SimDialer>,
}

pub(crate) struct SimDialer {
    connections: mpsc::Sender<SimConnection>,
    /// Whether dialing fails.
    pub(crate) down: AtomicBool,
    pub(crate) dials: AtomicUsize,
    redials: bool,
}

impl Dialer for SimDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        self.dials.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            if self.down.load(Ordering::SeqCst) {
                return Err(DialError::Connect(io::ErrorKind::ConnectionRefused.into()));
            }
            let (ours, theirs) = duplex(64 * 1024);
            let (read, outgoing) = split(theirs);
            let framing = Framing::WebSocket(Role::Server);
            let connection = SimConnection {
                inbound: Inbound::new(Box::new(read), framing, 1 << 26, None),
                outgoing,
                frames: FrameBuffer::new(framing),
                methods: Vec::new(),
            };
            self.connections
                .send(connection)
                .await
                .expect("the test listens");
            let (read, write) = split(ours);
            Ok(Transport::websocket(Box::new(read), Box::new(write)))
        })
    }

    fn redials(&self) -> bool {
        self.redials
    }

    fn name(&self) -> String {
        "the simulated server".to_owned()
    }
}

impl Sim {
    pub(crate) fn new() -> Self {
        Self::with(true)
    }

    /// Creates a server that can be dialed once.
    pub(crate) fn once() -> Self {
        Self::with(false)
    }

    fn with(redials: bool) -> Self {
        let (sender, connections) = mpsc::channel(16);
        let dialer = SimDialer {
            connections: sender,
            down: AtomicBool::new(false),
            dials: AtomicUsize::new(0),
            redials,
        };
        Sim {
            connections,
            dialer: Arc::new(dialer),
        }
    }

    pub(crate) fn shared_dialer(&self) -> Arc<dyn Dialer> {
        self.dialer.clone()
    }

    pub(crate) fn dialer(&self) -> &SimDialer {
        &self.dialer
    }

    /// Connects a client. Returns it and the server's side of the connection.
    pub(crate) async fn connect(
        &mut self,
        initialize_result: Value,
    ) -> (RemoteExecutor, SimConnection) {
        self.connect_with(RemoteOptions::default(), initialize_result)
            .await
    }

    pub(crate) async fn connect_with(
        &mut self,
        options: RemoteOptions,
        initialize_result: Value,
    ) -> (RemoteExecutor, SimConnection) {
        let dialer: Arc<dyn Dialer> = self.dialer.clone();
        let connecting = RemoteExecutor::with_dialer(dialer, options);
        let serving = async {
            let mut connection = self.accept().await;
            let hello = connection.expect_request("initialize").await;
            connection.respond(&hello, initialize_result).await;
            connection.expect_notification("initialized").await;
            connection
        };
        let (remote, connection) = tokio::join!(connecting, serving);
        (remote.expect("it connects"), connection)
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&mut self) -> SimConnection {
        soon("a connection", self.connections.recv())
            .await
            .expect("the client is there")
    }

    /// Waits for the next connection and resumes the session. Returns the request.
    pub(crate) async fn resumed(&mut self, initialize_result: Value) -> (SimConnection, Value) {
        let mut connection = self.accept().await;
        let hello = connection.expect_request("initialize").await;
        assert_eq!(hello["params"]["resumeSessionId"], SESSION);
        connection.respond(&hello, initialize_result).await;
        connection.expect_notification("initialized").await;
        (connection, hello["params"].clone())
    }
}

/// The server's side of one connection. Dropping it closes it.
pub(crate) struct SimConnection {
    inbound: Inbound,
    outgoing: WriteHalf<DuplexStream>,
    frames: FrameBuffer,
    /// The methods of all requests and notifications.
    pub(crate) methods: Vec<String>,
}

impl SimConnection {
    /// Waits for the next message.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            match soon("a message", self.inbound.next()).await {
                Ok(Some(Received::Message(text))) => {
                    let message: Value = serde_json::from_slice(&text).expect("it is JSON");
                    let method = message["method"].as_str().unwrap_or("a response");
                    self.methods.push(method.to_owned());
                    return message;
                }
                Ok(Some(Received::Ping(_) | Received::Pong)) => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// Waits for the next message, which must be this request.
    pub(crate) async fn expect_request(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        assert!(message["id"].is_i64(), "{message}");
        message
    }

    /// Waits for the next message, which must be this notification.
    pub(crate) async fn expect_notification(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        assert!(message["id"].is_null(), "{message}");
        message["params"].clone()
    }

    /// Checks that no message arrives for this time.
    pub(crate) async fn expect_silence(&mut self, time: Duration) {
        let heard = async {
            loop {
                match self.inbound.next().await {
                    Ok(Some(Received::Message(text))) => break text,
                    Ok(Some(Received::Ping(_) | Received::Pong)) => {}
                    _ => std::future::pending().await,
                }
            }
        };
        if let Ok(text) = tokio::time::timeout(time, heard).await {
            panic!("unexpected: {}", String::from_utf8_lossy(&text));
        }
    }

    /// Answers pings until the connection ends.
    pub(crate) async fn answer_pings(&mut self) {
        while let Ok(Some(received)) = self.inbound.next().await {
            if let Received::Ping(payload) = received {
                let length = u8::try_from(payload.len()).expect("a short payload");
                let frame = [&[0x8a, length], &payload[..]].concat();
                let _ = self.outgoing.write_all(&frame).await;
            }
        }
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn wait_closed(&mut self) {
        soon("the end of the connection", async {
            while !matches!(
                self.inbound.next().await,
                Ok(None | Some(Received::Close(..))) | Err(_)
            ) {}
        })
        .await;
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.frames.message(message.to_string().as_bytes());
        // The client may have closed the connection.
        let _ = self.outgoing.write_all(self.frames.as_bytes()).await;
        self.frames.clear();
    }

    /// Closes the WebSocket with a code and a reason text.
    pub(crate) async fn close(&mut self, code: u16, reason: &str) {
        let length = u8::try_from(2 + reason.len()).expect("a short reason");
        let frame = [&[0x88, length], &code.to_be_bytes()[..], reason.as_bytes()].concat();
        let _ = self.outgoing.write_all(&frame).await;
    }

    pub(crate) async fn respond(&mut self, request: &Value, result: Value) {
        self.send(json!({"id": request["id"], "result": result}))
            .await;
    }

    pub(crate) async fn reject(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"id": request["id"], "error": error}))
            .await;
    }

    /// Accepts a start. Returns the process id.
    pub(crate) async fn start(&mut self) -> String {
        let request = self.expect_request("process/start").await;
        let id = request["params"]["processId"].clone();
        self.respond(&request, json!({"processId": id, "sandboxType": "none"}))
            .await;
        id.as_str().expect("a name").to_owned()
    }

    pub(crate) async fn output(&mut self, id: &str, seq: u64, bytes: &[u8]) {
        let mut text = Vec::new();
        outpost_protocol::base64::encode_into(&mut text, bytes);
        let chunk = String::from_utf8(text).expect("base64 is text");
        self.send(json!({"method": "process/output", "params": {
            "processId": id, "seq": seq, "stream": "stdout", "chunk": chunk,
        }}))
        .await;
    }

    pub(crate) async fn exited(&mut self, id: &str, seq: u64, code: i32) {
        self.send(json!({"method": "process/exited", "params": {
            "processId": id, "seq": seq, "exitCode": code, "sandboxDenied": false,
        }}))
        .await;
    }

    pub(crate) async fn closed(&mut self, id: &str, seq: u64) {
        let params = json!({"processId": id, "seq": seq});
        self.send(json!({"method": "process/closed", "params": params}))
            .await;
    }
}

/// Response to a read.
pub(crate) fn page(chunks: &[(u64, &str)], next_seq: u64) -> Value {
    let chunks: Vec<_> = chunks
        .iter()
        .map(|(seq, text)| {
            let mut chunk = Vec::new();
            outpost_protocol::base64::encode_into(&mut chunk, text.as_bytes());
            let chunk = String::from_utf8(chunk).expect("base64 is text");
            json!({"seq": seq, "stream": "stdout", "chunk": chunk})
        })
        .collect();
    json!({"chunks": chunks, "nextSeq": next_seq, "exited": false, "exitCode": null,
           "closed": false, "failure": null})
}

/// Starts a process.
pub(crate) async fn started(
    remote: &RemoteExecutor,
    connection: &mut SimConnection,
    id: &str,
) -> Process {
    let start = Start::new(["x"]).cwd("/").id(id);
    let (process, _) = tokio::join!(remote.start(start), connection.start());
    process.expect("it starts")
}

/// Reads all events of a process as short texts.
pub(crate) async fn summarize(process: &Process) -> Vec<String> {
    let mut events = process.events();
    let mut texts = Vec::new();
    while let Some(event) = soon("an event", events.next()).await {
        texts.push(summary(event));
    }
    texts
}

pub(crate) fn summary(event: outpost_client::Event) -> String {
    use outpost_client::Event;
    match event {
        Event::Output { seq, bytes, .. } => format!("{seq} {}", String::from_utf8_lossy(&bytes)),
        Event::Exited {
            seq,
            code,
            sandbox_denied,
            ..
        } => {
            let kind = if sandbox_denied { "denied" } else { "exit" };
            format!("{seq} {kind} {code}")
        }
        Event::Closed { seq } => format!("{seq} closed"),
        Event::Failed { error } => error.to_string(),
    }
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(value) => value,
        Err(_) => panic!("timeout: {what}"),
    }
}

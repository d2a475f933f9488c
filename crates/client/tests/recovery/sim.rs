//! A server that does what a test says, and nothing by itself.

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
    DialError, Dialer, Place as _, Process, Remote, RemoteOptions, Start, Transport,
};
use outpost_rpc::{Frames, Framing, Inbound, Received, Role};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, DuplexStream, WriteHalf, duplex, split},
    sync::mpsc,
};

pub(crate) const SESSION: &str = "0f0f0f0f-secret-session";

/// More than anything that is waited for here.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a released server answers to `initialize`.
pub(crate) fn released() -> Value {
    json!({"sessionId": SESSION})
}

/// What one answers that can do everything.
pub(crate) fn capable() -> Value {
    json!({"sessionId": SESSION, "capabilities": {
        "acked": true, "closeStdin": true, "resize": true, "signals": true, "timeouts": true,
        "processList": true, "takeover": true, "terminateTree": true,
    }})
}

/// The server's side of all connections.
pub(crate) struct Sim {
    lines: mpsc::Receiver<SimLine>,
    dialer: Arc<SimDialer>,
}

pub(crate) struct SimDialer {
    lines: mpsc::Sender<SimLine>,
    /// Nobody listens.
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
            let line = SimLine {
                inbound: Inbound::new(Box::new(read), framing, 1 << 26, None),
                outgoing,
                frames: Frames::new(framing),
                asked: Vec::new(),
            };
            self.lines.send(line).await.expect("the test listens");
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

    /// One that can be reached once.
    pub(crate) fn once() -> Self {
        Self::with(false)
    }

    fn with(redials: bool) -> Self {
        let (sender, lines) = mpsc::channel(16);
        let dialer = SimDialer {
            lines: sender,
            down: AtomicBool::new(false),
            dials: AtomicUsize::new(0),
            redials,
        };
        Sim {
            lines,
            dialer: Arc::new(dialer),
        }
    }

    pub(crate) fn shared_dialer(&self) -> Arc<dyn Dialer> {
        self.dialer.clone()
    }

    pub(crate) fn dialer(&self) -> &SimDialer {
        &self.dialer
    }

    /// A client that is connected, and its connection.
    pub(crate) async fn connect(&mut self, welcome: Value) -> (Remote, SimLine) {
        self.connect_with(RemoteOptions::default(), welcome).await
    }

    pub(crate) async fn connect_with(
        &mut self,
        options: RemoteOptions,
        welcome: Value,
    ) -> (Remote, SimLine) {
        let dialer: Arc<dyn Dialer> = self.dialer.clone();
        let connecting = Remote::over(dialer, options);
        let serving = async {
            let mut line = self.accept().await;
            let hello = line.asked_for("initialize").await;
            line.answer(&hello, welcome).await;
            line.said("initialized").await;
            line
        };
        let (remote, line) = tokio::join!(connecting, serving);
        (remote.expect("it connects"), line)
    }

    /// The next connection.
    pub(crate) async fn accept(&mut self) -> SimLine {
        soon("a connection", self.lines.recv())
            .await
            .expect("the client is there")
    }

    /// The next connection, on which the session is resumed.
    pub(crate) async fn resumed(&mut self, welcome: Value) -> (SimLine, Value) {
        let mut line = self.accept().await;
        let hello = line.asked_for("initialize").await;
        assert_eq!(hello["params"]["resumeSessionId"], SESSION);
        line.answer(&hello, welcome).await;
        line.said("initialized").await;
        (line, hello["params"].clone())
    }
}

/// The server's side of one connection. Dropping it cuts it.
pub(crate) struct SimLine {
    inbound: Inbound,
    outgoing: WriteHalf<DuplexStream>,
    frames: Frames,
    /// Every method that came, notifications too.
    pub(crate) asked: Vec<String>,
}

impl SimLine {
    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            match soon("a message", self.inbound.next()).await {
                Ok(Some(Received::Message(text))) => {
                    let message: Value = serde_json::from_slice(&text).expect("it is JSON");
                    let method = message["method"].as_str().unwrap_or("an answer");
                    self.asked.push(method.to_owned());
                    return message;
                }
                Ok(Some(Received::Ping(_) | Received::Pong)) => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// The next message, which is a request for this.
    pub(crate) async fn asked_for(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        assert!(message["id"].is_i64(), "{message}");
        message
    }

    /// The next message, which is this notification.
    pub(crate) async fn said(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        assert!(message["id"].is_null(), "{message}");
        message["params"].clone()
    }

    /// Nothing is said for so long, or ever again.
    pub(crate) async fn is_quiet_for(&mut self, time: Duration) {
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

    /// Waits until the client has hung up.
    pub(crate) async fn hung_up(&mut self) {
        soon("the end of the connection", async {
            while !matches!(
                self.inbound.next().await,
                Ok(None | Some(Received::Close(_))) | Err(_)
            ) {}
        })
        .await;
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.frames.message(message.to_string().as_bytes());
        // Who has hung up doesn't hear it.
        let _ = self.outgoing.write_all(self.frames.as_bytes()).await;
        self.frames.clear();
    }

    /// Closes the WebSocket with a code.
    pub(crate) async fn close(&mut self, code: u16) {
        let code = code.to_be_bytes();
        let frame = [0x88, 2, code[0], code[1]];
        let _ = self.outgoing.write_all(&frame).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"id": request["id"], "result": result}))
            .await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"id": request["id"], "error": error}))
            .await;
    }

    /// Takes a start and answers it; gives the name of the process.
    pub(crate) async fn start(&mut self) -> String {
        let request = self.asked_for("process/start").await;
        let id = request["params"]["processId"].clone();
        self.answer(&request, json!({"processId": id, "sandboxType": "none"}))
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

/// The answer to a read: chunks by their numbers.
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

/// A process that the server has started.
pub(crate) async fn started(remote: &Remote, line: &mut SimLine, id: &str) -> Process {
    let start = Start::new(["x"]).cwd("/").id(id);
    let (process, _) = tokio::join!(remote.start(start), line.start());
    process.expect("it starts")
}

/// The events of a process to its end, in short.
pub(crate) async fn tale(process: &Process) -> Vec<String> {
    let mut events = process.events();
    let mut tale = Vec::new();
    while let Some(event) = soon("an event", events.next()).await {
        tale.push(brief(event));
    }
    tale
}

pub(crate) fn brief(event: outpost_client::Event) -> String {
    use outpost_client::Event;
    match event {
        Event::Output { seq, bytes, .. } => format!("{seq} {}", String::from_utf8_lossy(&bytes)),
        Event::Exited {
            seq,
            code,
            sandbox_denied,
        } => match sandbox_denied {
            true => format!("{seq} denied {code}"),
            false => format!("{seq} exit {code}"),
        },
        Event::Closed { seq } => format!("{seq} closed"),
        Event::Failed { message } => message,
    }
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

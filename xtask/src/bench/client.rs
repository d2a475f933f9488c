//! A minimal blocking client: one thread, one socket, no runtime.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use base64_simd::STANDARD;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameSocket};
use tokio_tungstenite::tungstenite::{Bytes, client};

use super::message::Message;
use super::server::{Candidate, Server};

/// Read timeout; no row waits longer.
const SILENCE: Duration = Duration::from_secs(30);

/// The most bytes per read of a [`FrameSocket`], which has no option for it.
pub(super) const MAX_READ: usize = 128 * 1024;

/// The largest accepted frame.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// The mask of all sent frames. The protocol requires one; its value is irrelevant.
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// The error code while the old connection still owns the session.
const STILL_ATTACHED: i64 = -32010;

/// The environment of every started program.
pub(super) const ENVIRONMENT: (&str, &str) = ("PATH", "/usr/bin:/bin");

/// A TCP connection, with or without TLS.
enum Socket {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(tcp) => tcp,
            Socket::Encrypted(tls) => &tls.sock,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(tcp) => tcp.read(buffer),
            Socket::Encrypted(tls) => tls.read(buffer),
        }
    }
}

/// How to reach a server, and how to authenticate.
#[derive(Clone, Copy, Default)]
pub(super) struct Access<'a> {
    /// Needed for `wss://`.
    pub(super) tls: Option<&'a Arc<ClientConfig>>,
    pub(super) token: Option<&'a str>,
}

/// A socket that sends written bytes in one piece, before it waits for more to read.
struct BatchingSocket {
    socket: Socket,
    pending: Vec<u8>,
}

impl BatchingSocket {
    fn send_pending(&mut self) -> io::Result<()> {
        let sent = match &mut self.socket {
            Socket::Plain(tcp) => tcp.write_all(&self.pending),
            Socket::Encrypted(tls) => tls.write_all(&self.pending).and_then(|()| tls.flush()),
        };
        self.pending.clear();
        sent
    }
}

impl Read for BatchingSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.send_pending()?;
        self.socket.read(buffer)
    }
}

impl Write for BatchingSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Client {
    /// Frames, not messages: checking output for UTF-8 would slow a flood down.
    frames: FrameSocket<BatchingSocket>,
    /// The last message, which [`Message`] borrows from.
    message: Bytes,
    last_id: u64,
    /// The session id.
    pub(super) session: String,
}

/// Parameters of a start.
#[derive(Clone, Copy, Default)]
pub(super) struct Start<'a> {
    pub(super) argv: &'a [&'a str],
    pub(super) tty: bool,
    pub(super) pipe_stdin: bool,
    pub(super) sandbox: Option<&'a Value>,
    /// The home directory.
    pub(super) home: Option<&'a str>,
    pub(super) shell_snapshot: Option<&'a Value>,
}

impl<'a> Start<'a> {
    /// A program on pipes, without input.
    pub(super) fn new(argv: &'a [&'a str]) -> Self {
        Start {
            argv,
            ..Start::default()
        }
    }
}

impl Client {
    /// Connects to `ws://HOST:PORT` and completes the handshake. Resumes `session`, retrying until
    /// the server has noticed the lost connection.
    pub(super) fn connect(url: &str, session: Option<&str>) -> Result<Self> {
        Self::connect_with(url, session, Access::default())
    }

    /// Connects to `wss://HOST:PORT` too, or with a token.
    pub(super) fn connect_with(
        url: &str,
        session: Option<&str>,
        access: Access<'_>,
    ) -> Result<Self> {
        let mut client = Self {
            frames: upgrade(url, access).with_context(|| format!("connecting to {url}"))?,
            message: Bytes::new(),
            last_id: 0,
            session: String::new(),
        };
        let hello = match session {
            Some(session) => json!({"clientName": "outpost-bench", "resumeSessionId": session}),
            None => json!({"clientName": "outpost-bench"}),
        };
        let mut id = client.request("initialize", &hello)?;
        loop {
            match client.receive()? {
                Message::Response { id: of, result } if of == id => {
                    let result: Value = serde_json::from_str(result)?;
                    let session = result["sessionId"].as_str().context("no session id")?;
                    session.clone_into(&mut client.session);
                    client.send(&json!({"method": "initialized", "params": {}}))?;
                    return Ok(client);
                }
                Message::Rejected { code, .. } if code == STILL_ATTACHED => {
                    id = client.request("initialize", &hello)?;
                }
                Message::Rejected { code, message } => bail!("rejected: {code} {message}"),
                _ => {}
            }
        }
    }

    /// Queues a request and returns its id.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last_id += 1;
        self.send(&json!({"id": self.last_id, "method": method, "params": params}))?;
        Ok(self.last_id)
    }

    /// Queues a start and returns the request id and the process id.
    pub(super) fn start(&mut self, start: Start<'_>) -> Result<(u64, String)> {
        let name = format!("bench-{}", self.last_id + 1);
        let (variable, value) = ENVIRONMENT;
        let mut env = json!({variable: value});
        if let Some(home) = start.home {
            env["HOME"] = home.into();
        }
        let mut params = json!({
            "processId": name,
            "argv": start.argv,
            "cwd": "file:///",
            "env": env,
            "tty": start.tty,
            "pipeStdin": start.pipe_stdin,
            "arg0": null,
            "sandbox": start.sandbox,
        });
        if let Some(snapshot) = start.shell_snapshot {
            params["shellSnapshot"] = snapshot.clone();
        }
        Ok((self.request("process/start", &params)?, name))
    }

    /// Queues a write of one byte and returns the request id.
    pub(super) fn type_key(&mut self, process: &str) -> Result<u64> {
        let write = format!("w-{}", self.last_id + 1);
        let params = json!({"processId": process, "chunk": "eA==", "writeId": write});
        self.request("process/write", &params)
    }

    /// Queues a read of all retained output and returns the request id.
    pub(super) fn read(&mut self, process: &str, wait_ms: u32) -> Result<u64> {
        let params = json!({"processId": process, "afterSeq": null, "waitMs": wait_ms});
        self.request("process/read", &params)
    }

    /// Waits for a response and discards other messages.
    pub(super) fn wait_response(&mut self, id: u64) -> Result<()> {
        while !matches!(self.next()?, Message::Response { id: of, .. } if of == id) {}
        Ok(())
    }

    /// Returns the next message. Sends queued requests before waiting. An error response is an
    /// error, since the benchmark expects none.
    pub(super) fn next(&mut self) -> Result<Message<'_>> {
        match self.receive()? {
            Message::Rejected { code, message } => {
                bail!("the server returned error {code}: {message}")
            }
            message => Ok(message),
        }
    }

    fn receive(&mut self) -> Result<Message<'_>> {
        // Lets the socket reuse its buffer.
        self.message = Bytes::new();
        loop {
            let frame = self.frames.read(Some(MAX_FRAME));
            let frame = frame.context("reading from the server")?;
            let frame = frame.context("the server closed the connection")?;
            match frame.header().opcode {
                OpCode::Data(Data::Text | Data::Binary) if frame.header().is_final => {
                    self.message = frame.into_payload();
                    return Message::parse(&self.message);
                }
                OpCode::Control(Control::Ping) => {
                    self.write(Frame::pong(frame.into_payload()))?;
                }
                OpCode::Control(Control::Pong) => {}
                OpCode::Control(Control::Close) => bail!("the server closed the connection"),
                other => bail!("a frame of kind {other}, which this client doesn't know"),
            }
        }
    }

    /// Sends the queued requests in one write.
    pub(super) fn flush(&mut self) -> Result<()> {
        let sent = self.frames.get_mut().send_pending();
        sent.context("writing to the server")
    }

    /// Sends the queued requests and returns the socket of a connection without TLS.
    pub(super) fn into_socket(mut self) -> Result<TcpStream> {
        self.flush()?;
        Ok(self.frames.get_ref().socket.tcp().try_clone()?)
    }

    /// Closes the socket without a close frame.
    pub(super) fn disconnect(&mut self) -> Result<()> {
        let socket = self.frames.get_ref().socket.tcp();
        socket.shutdown(Shutdown::Both).context("disconnecting")
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let text = message.to_string();
        self.write(Frame::message(text, OpCode::Data(Data::Text), true))
    }

    fn write(&mut self, mut frame: Frame) -> Result<()> {
        frame.header_mut().mask = Some(MASK);
        Ok(self.frames.send(frame)?)
    }
}

/// Opens the WebSocket. The server is silent before the first request.
fn upgrade(url: &str, access: Access<'_>) -> Result<FrameSocket<BatchingSocket>> {
    let (_, rest) = url.split_once("://").context("not a URL")?;
    let tcp = TcpStream::connect(rest.split('/').next().unwrap_or(rest))?;
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(SILENCE))?;
    let socket = match access.tls.filter(|_| url.starts_with("wss://")) {
        Some(config) => {
            let tls = ClientConnection::new(Arc::clone(config), "localhost".try_into()?)?;
            Socket::Encrypted(Box::new(StreamOwned::new(tls, tcp)))
        }
        None => Socket::Plain(tcp),
    };
    let socket = BatchingSocket {
        socket,
        pending: Vec::new(),
    };
    let mut request = format!("ws://{rest}").into_client_request()?;
    if let Some(token) = access.token {
        let value = format!("Bearer {token}").parse()?;
        request.headers_mut().insert("authorization", value);
    }
    let opened = client(request, socket).map_err(|error| anyhow!("no WebSocket upgrade: {error}"));
    Ok(FrameSocket::new(opened?.0.into_inner()))
}

/// A server with a connected client, which is dropped first.
pub(super) struct ConnectedServer {
    pub(super) client: Client,
    pub(super) server: Server,
}

impl ConnectedServer {
    /// Starts a server and connects to it.
    pub(super) fn open(candidate: Candidate<'_>) -> Result<Self> {
        let server = candidate.start()?;
        let client = Client::connect(server.url(), None)?;
        Ok(Self { client, server })
    }
}

/// A server with a connected client and one process that reads its stdin.
pub(super) struct Interactive {
    pub(super) link: ConnectedServer,
    pub(super) process: String,
}

impl Interactive {
    pub(super) fn open(candidate: Candidate<'_>, argv: &[&str]) -> Result<Self> {
        let mut link = ConnectedServer::open(candidate)?;
        let mut start = Start::new(argv);
        start.pipe_stdin = true;
        let (id, process) = link.client.start(start)?;
        link.client.wait_response(id)?;
        Ok(Self { link, process })
    }
}

/// Decodes a chunk into a reused buffer.
pub(super) fn decode<'a>(chunk: &[u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    buffer.clear();
    let decoded = STANDARD.decode_append(chunk, buffer);
    decoded.map_err(|_| anyhow!("a chunk of {} characters isn't base64", chunk.len()))?;
    Ok(buffer)
}

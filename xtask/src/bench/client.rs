//! A minimal client: one thread, one socket, no runtime.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64_simd::{AsOut as _, STANDARD};

use super::frames::{FrameReader, Opcode, append};
use super::message::Message;

/// Read timeout; no row waits longer.
const SILENCE: Duration = Duration::from_secs(30);

/// The environment of every started program.
pub(super) const ENVIRONMENT: (&str, &str) = ("PATH", "/usr/bin:/bin");

pub(super) struct Client {
    frames: FrameReader<TcpStream>,
    /// A clone of the socket for writing.
    out: TcpStream,
    /// Frames to send before the next wait, in one write.
    pending: Vec<u8>,
    last_id: u64,
    /// The session id.
    pub(super) session: String,
}

/// The error code while the old connection still owns the session.
const STILL_ATTACHED: i64 = -32010;

/// Parameters of a start.
#[derive(Clone, Copy, Default)]
pub(super) struct Start<'a> {
    pub(super) argv: &'a [&'a str],
    pub(super) tty: bool,
    pub(super) pipe_stdin: bool,
    /// The sandbox, as JSON.
    pub(super) sandbox: Option<&'a str>,
}

impl Client {
    /// Connects to `ws://HOST:PORT` and completes the handshake.
    pub(super) fn connect(url: &str) -> Result<Self> {
        Self::handshake(url, r#"{"clientName":"outpost-bench"}"#)
    }

    /// Resumes a session, retrying until the server has noticed the lost connection.
    pub(super) fn resume(url: &str, session: &str) -> Result<Self> {
        let hello = format!(r#"{{"clientName":"outpost-bench","resumeSessionId":"{session}"}}"#);
        Self::handshake(url, &hello)
    }

    fn handshake(url: &str, hello: &str) -> Result<Self> {
        let (socket, early) = upgrade(url).with_context(|| format!("connecting to {url}"))?;
        let mut client = Self {
            out: socket.try_clone()?,
            frames: FrameReader::new(socket, &early),
            pending: Vec::new(),
            last_id: 0,
            session: String::new(),
        };
        loop {
            let id = client.request("initialize", hello);
            let answer = client.response_message(id)?;
            if let Some(session) = answer["result"]["sessionId"].as_str() {
                client.session = session.to_owned();
                client.send(r#"{"method":"initialized","params":{}}"#);
                return Ok(client);
            }
            ensure!(
                answer["error"]["code"] == STILL_ATTACHED,
                "rejected: {answer}"
            );
        }
    }

    /// Waits for the whole response message.
    fn response_message(&mut self, id: u64) -> Result<serde_json::Value> {
        self.flush()?;
        loop {
            let (opcode, place) = self.frames.next()?;
            if opcode == Opcode::Message {
                let message: serde_json::Value =
                    serde_json::from_slice(self.frames.payload(place))?;
                if message["id"] == id {
                    return Ok(message);
                }
            }
        }
    }

    /// Queues a request and returns its id.
    pub(super) fn request(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&format!(
            r#"{{"id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    /// Queues a start and returns the request id and the process id.
    pub(super) fn start(&mut self, start: Start<'_>) -> Result<(u64, String)> {
        let Start {
            tty, pipe_stdin, ..
        } = start;
        let name = format!("bench-{}", self.last_id + 1);
        let argv = serde_json::to_string(start.argv)?;
        let sandbox = start.sandbox.unwrap_or("null");
        let (variable, value) = ENVIRONMENT;
        let params = format!(
            r#"{{"processId":"{name}","argv":{argv},"cwd":"file:///","env":{{"{variable}":"{value}"}},"tty":{tty},"pipeStdin":{pipe_stdin},"arg0":null,"sandbox":{sandbox}}}"#
        );
        let id = self.request("process/start", &params);
        Ok((id, name))
    }

    /// Queues a write of one byte and returns the request id.
    pub(super) fn type_key(&mut self, process: &str) -> u64 {
        let write = self.last_id + 1;
        let params = format!(r#"{{"processId":"{process}","chunk":"eA==","writeId":"w-{write}"}}"#);
        self.request("process/write", &params)
    }

    /// Waits for a response and discards other messages.
    pub(super) fn wait_response(&mut self, id: u64) -> Result<()> {
        while self.next()? != (Message::Response { id }) {}
        Ok(())
    }

    /// Returns the next message. Sends queued requests before waiting.
    pub(super) fn next(&mut self) -> Result<Message<'_>> {
        loop {
            if !self.frames.has_frame()? {
                self.flush()?;
            }
            let (opcode, place) = self.frames.next()?;
            match opcode {
                Opcode::Message => return Message::parse(self.frames.payload(place)),
                Opcode::Ping => {
                    append(&mut self.pending, Opcode::Pong, self.frames.payload(place));
                }
                Opcode::Pong => {}
                Opcode::Close => bail!("the server closed the connection"),
            }
        }
    }

    /// Sends the queued frames in one write.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            let sent = self.out.write_all(&self.pending);
            self.pending.clear();
            sent.context("writing to the server")?;
        }
        Ok(())
    }

    /// Closes the socket without a close frame.
    pub(super) fn disconnect(&mut self) -> Result<()> {
        self.out
            .shutdown(std::net::Shutdown::Both)
            .context("disconnecting")
    }

    fn send(&mut self, message: &str) {
        append(&mut self.pending, Opcode::Message, message.as_bytes());
    }
}

/// Opens the WebSocket. Also returns the bytes received after the response head.
fn upgrade(url: &str) -> Result<(TcpStream, Vec<u8>)> {
    let rest = url.strip_prefix("ws://").context("not a ws:// URL")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut socket = TcpStream::connect(host)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    // The key of the RFC's example; the accept header is not checked.
    let head = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(head.as_bytes())?;
    let mut received = Vec::new();
    let end = loop {
        let mut buffer = [0; 1024];
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "the server closed the connection");
        received.extend_from_slice(&buffer[..read]);
        if let Some(end) = memchr::memmem::find(&received, b"\r\n\r\n") {
            break end + 4;
        }
    };
    ensure!(
        received.starts_with(b"HTTP/1.1 101 "),
        "no WebSocket upgrade: {}",
        String::from_utf8_lossy(&received[..end]).trim()
    );
    Ok((socket, received.split_off(end)))
}

/// Decodes chunks into a reused buffer.
#[derive(Default)]
pub(super) struct Base64Decoder {
    buffer: Vec<u8>,
}

impl Base64Decoder {
    pub(super) fn decode(&mut self, chunk: &[u8]) -> Result<&[u8]> {
        if self.buffer.len() < chunk.len() {
            self.buffer.resize(chunk.len(), 0);
        }
        match STANDARD.decode(chunk, self.buffer.as_out()) {
            Ok(bytes) => Ok(bytes),
            Err(_) => bail!("a chunk of {} characters isn't base64", chunk.len()),
        }
    }
}

//! A client that does nothing but what is measured: one thread, one socket, no runtime.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64_simd::{AsOut as _, STANDARD};

use super::frames::{FrameReader, Opcode, append};
use super::message::Message;

/// A server that says nothing for so long is broken; none of our rows waits longer.
const SILENCE: Duration = Duration::from_secs(30);

/// The whole environment of everything that is started, by a server or bare.
pub(super) const ENVIRONMENT: (&str, &str) = ("PATH", "/usr/bin:/bin");

pub(super) struct Client {
    frames: FrameReader<TcpStream>,
    /// The same socket, for what we send.
    out: TcpStream,
    /// Frames that are sent before the next wait, in one write.
    pending: Vec<u8>,
    last_id: u64,
    /// The key of the session.
    pub(super) session: String,
}

/// What a server answers that has not noticed yet that a connection is gone.
const STILL_ATTACHED: i64 = -32010;

/// How a process is to be started.
#[derive(Clone, Copy, Default)]
pub(super) struct Start<'a> {
    pub(super) argv: &'a [&'a str],
    pub(super) tty: bool,
    pub(super) pipe_stdin: bool,
    /// What it is confined to, as JSON.
    pub(super) sandbox: Option<&'a str>,
}

impl Client {
    /// Connects to `ws://HOST:PORT` and gets the introductions over with.
    pub(super) fn connect(url: &str) -> Result<Self> {
        Self::introduce(url, r#"{"clientName":"outpost-bench"}"#)
    }

    /// Comes back to a session, as often as it takes the server to notice that nobody has it.
    pub(super) fn resume(url: &str, session: &str) -> Result<Self> {
        let hello = format!(r#"{{"clientName":"outpost-bench","resumeSessionId":"{session}"}}"#);
        Self::introduce(url, &hello)
    }

    fn introduce(url: &str, hello: &str) -> Result<Self> {
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
            let answer = client.whole_answer(id)?;
            if let Some(session) = answer["result"]["sessionId"].as_str() {
                client.session = session.to_owned();
                client.send(r#"{"method":"initialized","params":{}}"#);
                return Ok(client);
            }
            ensure!(
                answer["error"]["code"] == STILL_ATTACHED,
                "refused: {answer}"
            );
        }
    }

    /// An answer with all that is in it.
    fn whole_answer(&mut self, id: u64) -> Result<serde_json::Value> {
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

    /// Leaves a request to be sent with the next wait; its id.
    pub(super) fn request(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&format!(
            r#"{{"id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    /// Leaves the start of a process to be sent; the request's id and the name of the process.
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

    /// Leaves one keystroke for a process to be sent; the request's id.
    pub(super) fn press(&mut self, process: &str) -> u64 {
        let write = self.last_id + 1;
        let params = format!(r#"{{"processId":"{process}","chunk":"eA==","writeId":"w-{write}"}}"#);
        self.request("process/write", &params)
    }

    /// Waits for an answer and lets everything else go by.
    pub(super) fn answered(&mut self, id: u64) -> Result<()> {
        while self.next()? != (Message::Answer { id }) {}
        Ok(())
    }

    /// The next thing the server says. What is to be sent is sent, should it have to wait.
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
                Opcode::Close => bail!("the server said goodbye"),
            }
        }
    }

    /// Sends what was left to be sent, in one write.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            let sent = self.out.write_all(&self.pending);
            self.pending.clear();
            sent.context("writing to the server")?;
        }
        Ok(())
    }

    /// Cuts the line without a word.
    pub(super) fn hang_up(&mut self) -> Result<()> {
        self.out
            .shutdown(std::net::Shutdown::Both)
            .context("hanging up")
    }

    fn send(&mut self, message: &str) {
        append(&mut self.pending, Opcode::Message, message.as_bytes());
    }
}

/// Opens the WebSocket by hand; also gives what was received behind the answer.
fn upgrade(url: &str) -> Result<(TcpStream, Vec<u8>)> {
    let rest = url.strip_prefix("ws://").context("it isn't a ws:// URL")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut socket = TcpStream::connect(host)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    // The key is the RFC's example: whether we get the right answer isn't what is measured.
    let head = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(head.as_bytes())?;
    let mut received = Vec::new();
    let end = loop {
        let mut buffer = [0; 1024];
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "it hung up");
        received.extend_from_slice(&buffer[..read]);
        if let Some(end) = memchr::memmem::find(&received, b"\r\n\r\n") {
            break end + 4;
        }
    };
    ensure!(
        received.starts_with(b"HTTP/1.1 101 "),
        "it didn't switch to WebSocket: {}",
        String::from_utf8_lossy(&received[..end]).trim()
    );
    Ok((socket, received.split_off(end)))
}

/// Turns chunks back into bytes, in a buffer that is kept.
#[derive(Default)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
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

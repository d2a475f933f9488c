//! Messages on a byte stream: WebSocket frames or lines.

use std::sync::Arc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::received::{ConnectionEnd, Inbox};

/// A TCP or unix socket.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socket for T {}

type WebSocket = WebSocketStream<Box<dyn Socket>>;

/// The sending half.
pub(super) enum Writer {
    WebSocket(SplitSink<WebSocket, Message>),
    /// None after the input was closed.
    Lines(Option<pipe::Sender>),
}

/// The receiving half.
pub(super) enum Reader {
    WebSocket(SplitStream<WebSocket>),
    Lines(BufReader<pipe::Receiver>),
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Writer::WebSocket(_) => "WebSocket",
            Writer::Lines(_) => "Lines",
        })
    }
}

/// Opens a WebSocket.
pub(super) async fn websocket(url: &str) -> (Writer, Reader) {
    let socket: Box<dyn Socket> = if let Some(path) = url.strip_prefix("unix://") {
        let socket = UnixStream::connect(path).await;
        Box::new(socket.unwrap_or_else(|error| panic!("cannot connect to {url}: {error}")))
    } else {
        let address = url.strip_prefix("ws://").unwrap_or(url);
        let socket = TcpStream::connect(address).await.and_then(|socket| {
            socket.set_nodelay(true)?;
            Ok(socket)
        });
        Box::new(socket.unwrap_or_else(|error| panic!("cannot connect to {url}: {error}")))
    };
    // No limits of the client itself.
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let opened = client_async_with_config("ws://localhost/", socket, Some(config)).await;
    let (socket, _) = opened.unwrap_or_else(|error| panic!("{url} is not a WebSocket: {error}"));
    let (write, read) = socket.split();
    (Writer::WebSocket(write), Reader::WebSocket(read))
}

impl Writer {
    pub(super) async fn text(&mut self, text: &str) -> Result<(), String> {
        match self {
            Writer::WebSocket(_) => self.frames(vec![Message::text(text)]).await,
            Writer::Lines(_) => {
                let line = [text.as_bytes(), b"\n"].concat();
                self.bytes(&line).await
            }
        }
    }

    pub(super) async fn frames(&mut self, frames: Vec<Message>) -> Result<(), String> {
        let Writer::WebSocket(socket) = self else {
            return Err("a stdio connection has no frames".to_owned());
        };
        for frame in frames {
            socket
                .feed(frame)
                .await
                .map_err(|error| error.to_string())?;
        }
        socket.flush().await.map_err(|error| error.to_string())
    }

    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Writer::Lines(Some(pipe)) => pipe
                .write_all(bytes)
                .await
                .map_err(|error| error.to_string()),
            Writer::Lines(None) => Err("the input is closed".to_owned()),
            Writer::WebSocket(_) => Err("a WebSocket has no raw bytes".to_owned()),
        }
    }

    pub(super) async fn close(&mut self) -> Result<(), String> {
        match self {
            Writer::WebSocket(socket) => {
                let closing = socket.send(Message::Close(None)).await;
                closing.map_err(|error| error.to_string())
            }
            Writer::Lines(pipe) => {
                drop(pipe.take());
                Ok(())
            }
        }
    }
}

impl Reader {
    pub(super) fn lines(pipe: pipe::Receiver) -> Self {
        Reader::Lines(BufReader::new(pipe))
    }
}

/// Reads to the end of the connection, while the gate is open.
pub(super) async fn read_all(
    mut reader: Reader,
    inbox: Arc<Inbox>,
    mut gate: watch::Receiver<bool>,
) {
    loop {
        if gate.wait_for(|open| *open).await.is_err() {
            return;
        }
        let end = match &mut reader {
            Reader::WebSocket(socket) => match socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    inbox.message(text.as_bytes());
                    None
                }
                Some(Ok(Message::Pong(payload))) => {
                    inbox.pong(payload.to_vec());
                    None
                }
                Some(Ok(Message::Binary(_))) => panic!("unexpected binary frame"),
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(1005, |frame| frame.code.into());
                    Some(ConnectionEnd::Code(code))
                }
                Some(Ok(Message::Ping(_) | Message::Frame(_))) => None,
                Some(Err(_)) | None => Some(ConnectionEnd::Abrupt),
            },
            Reader::Lines(lines) => {
                let mut line = Vec::new();
                match lines.read_until(b'\n', &mut line).await {
                    Ok(0) | Err(_) => Some(ConnectionEnd::Abrupt),
                    Ok(_) => {
                        assert_eq!(line.pop(), Some(b'\n'), "incomplete last line");
                        inbox.message(&line);
                        None
                    }
                }
            }
        };
        if let Some(end) = end {
            return inbox.end(end);
        }
    }
}

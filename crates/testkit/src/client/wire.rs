//! Messages on a byte stream: WebSocket frames or lines.

use std::error::Error;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::received::{ConnectionEnd, Incoming};

/// The result of an operation on a connection that may be lost.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

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

/// Opens a WebSocket at `ws://ADDRESS` or `unix://PATH`, with a bearer token if there is one.
pub(super) async fn websocket(url: &str, token: Option<&str>) -> Outcome<(Writer, Reader)> {
    let socket: Box<dyn Socket> = if let Some(path) = url.strip_prefix("unix://") {
        Box::new(UnixStream::connect(path).await?)
    } else {
        let socket = TcpStream::connect(url.strip_prefix("ws://").unwrap_or(url)).await?;
        socket.set_nodelay(true)?;
        Box::new(socket)
    };
    // No limits of the client itself.
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let mut request = "ws://localhost/".into_client_request()?;
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse()?;
        request.headers_mut().insert("authorization", value);
    }
    let opened = client_async_with_config(request, socket, Some(config)).await;
    let (write, read) = opened?.0.split();
    Ok((Writer::WebSocket(write), Reader::WebSocket(read)))
}

impl Writer {
    pub(super) async fn text(&mut self, text: &str) -> Outcome<()> {
        match self {
            Writer::WebSocket(_) => self.frames(vec![Message::text(text)]).await,
            Writer::Lines(_) => self.bytes(&[text.as_bytes(), b"\n"].concat()).await,
        }
    }

    pub(super) async fn frames(&mut self, frames: Vec<Message>) -> Outcome<()> {
        let Writer::WebSocket(socket) = self else {
            return Err("a stdio connection has no frames".into());
        };
        for frame in frames {
            socket.feed(frame).await?;
        }
        Ok(socket.flush().await?)
    }

    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self {
            Writer::Lines(Some(pipe)) => Ok(pipe.write_all(bytes).await?),
            Writer::Lines(None) => Err("the input is closed".into()),
            Writer::WebSocket(_) => Err("a WebSocket has no raw bytes".into()),
        }
    }

    /// Sends a close frame, or closes the pipe. The connection may be lost already.
    pub(super) async fn close(&mut self) {
        match self {
            Writer::WebSocket(socket) => drop(socket.send(Message::Close(None)).await),
            Writer::Lines(pipe) => *pipe = None,
        }
    }
}

impl Reader {
    pub(super) async fn next(&mut self) -> Incoming {
        match self {
            Reader::WebSocket(socket) => loop {
                return match socket.next().await {
                    Some(Ok(Message::Text(text))) => Incoming::message(text.as_bytes()),
                    Some(Ok(Message::Pong(payload))) => Incoming::Pong(payload.to_vec()),
                    Some(Ok(Message::Binary(_))) => panic!("unexpected binary frame"),
                    Some(Ok(Message::Close(frame))) => {
                        let code = frame.map_or(1005, |frame| frame.code.into());
                        Incoming::End(ConnectionEnd::Code(code))
                    }
                    Some(Ok(Message::Ping(_) | Message::Frame(_))) => continue,
                    Some(Err(_)) | None => Incoming::End(ConnectionEnd::Abrupt),
                };
            },
            Reader::Lines(lines) => {
                let mut line = Vec::new();
                if let Ok(0) | Err(_) = lines.read_until(b'\n', &mut line).await {
                    return Incoming::End(ConnectionEnd::Abrupt);
                }
                assert_eq!(line.pop(), Some(b'\n'), "incomplete last line");
                Incoming::message(&line)
            }
        }
    }
}

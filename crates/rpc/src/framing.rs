//! Message framing on a byte stream.

/// Side of a WebSocket. Only clients mask their frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepted the connection.
    Server,
    /// Opened the connection.
    Client,
}

/// The framing of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message per WebSocket message, over TCP or a unix socket.
    WebSocket(Role),
    /// One message per line, over standard input and output.
    Lines,
}

impl Framing {
    /// Returns the prefix of the error message for malformed input on this transport.
    #[must_use]
    pub fn malformed_prefix(self) -> &'static str {
        match self {
            Framing::WebSocket(_) => {
                "failed to parse websocket JSON-RPC message from exec-server websocket"
            }
            Framing::Lines => "failed to parse JSON-RPC message from exec-server stdio",
        }
    }
}

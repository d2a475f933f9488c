//! A scripted HTTP server on loopback. It can also violate HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::deadline::expect_soon;

/// One write of a long body.
static FLOOD: [u8; 64 * 1024] = [b'.'; 64 * 1024];

/// The server. It ends when dropped.
#[derive(Debug)]
pub struct HttpTestServer {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    accepting: JoinHandle<()>,
}

/// The counters of a test server.
#[derive(Debug, Default)]
struct State {
    requests: Vec<ReceivedRequest>,
    /// The number of open connections.
    open: usize,
    /// The number of requests being answered.
    answering: usize,
    /// The number of calls of [`HttpTestServer::resume`].
    resumed: usize,
    dots: u64,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The method.
    pub method: String,
    /// The path, or the whole URL for a proxy.
    pub target: String,
    /// Header names and values, as received.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// One step of a scripted response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseStep {
    /// Writes these bytes.
    Bytes(Vec<u8>),
    /// Writes this many dots.
    Dots(u64),
    /// Waits for [`HttpTestServer::resume`].
    Wait,
    /// Sends nothing more and keeps the connection open.
    Silence,
    /// Closes the connection.
    Close,
}

impl ReceivedRequest {
    /// Returns all values of a header, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// A complete response.
pub fn page(status: &str, headers: &[&str], body: &[u8]) -> Vec<ResponseStep> {
    let length = format!("Content-Length: {}", body.len());
    let mut headers = headers.to_vec();
    headers.push(&length);
    vec![head(status, &headers), ResponseStep::Bytes(body.to_vec())]
}

/// The head of a response.
pub fn head(status: &str, headers: &[&str]) -> ResponseStep {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    text.push_str("\r\n");
    ResponseStep::Bytes(text.into_bytes())
}

/// A chunk of a chunked body. An empty one ends the body.
pub fn chunk(bytes: &[u8]) -> ResponseStep {
    let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
    piece.extend_from_slice(bytes);
    piece.extend_from_slice(b"\r\n");
    ResponseStep::Bytes(piece)
}

impl HttpTestServer {
    /// Starts a server on a free port; `answer` returns the steps for each request.
    pub async fn start(
        answer: impl Fn(&ReceivedRequest) -> Vec<ResponseStep> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let state = Arc::<watch::Sender<State>>::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state), Arc::new(answer)));
        HttpTestServer {
            address,
            state,
            accepting,
        }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for request `number`, counted from 0.
    pub async fn request(&self, number: usize) -> ReceivedRequest {
        self.wait_for("a request", |state| state.requests.len() > number)
            .await;
        self.state.borrow().requests[number].clone()
    }

    /// The number of requests received.
    pub fn count(&self) -> usize {
        self.state.borrow().requests.len()
    }

    /// Ends every [`ResponseStep::Wait`].
    pub fn resume(&self) {
        self.state.send_modify(|state| state.resumed += 1);
    }

    /// The number of dots written.
    pub fn dots_written(&self) -> u64 {
        self.state.borrow().dots
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.state.borrow().open
    }

    /// The number of requests being answered.
    pub fn answering(&self) -> usize {
        self.state.borrow().answering
    }

    /// Waits until no request is being answered.
    pub async fn wait_idle(&self) {
        self.wait_answering(0).await;
    }

    /// Waits until `requests` requests are being answered.
    pub async fn wait_answering(&self, requests: usize) {
        let over = |state: &State| state.answering == requests;
        self.wait_for("other responses to end", over).await;
    }

    async fn wait_for(&self, what: &str, is_so: impl FnMut(&State) -> bool) {
        let mut state = self.state.subscribe();
        let _ = expect_soon(what, state.wait_for(is_so)).await;
    }
}

impl Drop for HttpTestServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Script = dyn Fn(&ReceivedRequest) -> Vec<ResponseStep> + Send + Sync;

async fn accept(listener: TcpListener, state: Arc<watch::Sender<State>>, answer: Arc<Script>) {
    // Aborted with this task.
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        state.send_modify(|state| state.open += 1);
        let (state, answer) = (Arc::clone(&state), Arc::clone(&answer));
        connections.spawn(async move {
            serve(socket, &state, &*answer).await;
            state.send_modify(|state| state.open -= 1);
        });
    }
}

async fn serve(mut socket: TcpStream, state: &watch::Sender<State>, answer: &Script) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        let steps = answer(&request);
        state.send_modify(|state| {
            state.requests.push(request);
            state.answering += 1;
        });
        let mut open = true;
        for step in steps {
            open = open && perform(step, &mut socket, state).await;
        }
        state.send_modify(|state| state.answering -= 1);
        if !open {
            return;
        }
    }
}

/// Performs one step. Returns false if the connection is over.
async fn perform(step: ResponseStep, socket: &mut TcpStream, state: &watch::Sender<State>) -> bool {
    match step {
        ResponseStep::Bytes(bytes) => socket.write_all(&bytes).await.is_ok(),
        ResponseStep::Dots(mut left) => {
            while left > 0 {
                let piece = left.min(FLOOD.len() as u64);
                if socket.write_all(&FLOOD[..piece as usize]).await.is_err() {
                    return false;
                }
                left -= piece;
                state.send_modify(|state| state.dots += piece);
            }
            true
        }
        ResponseStep::Wait => {
            let times = state.borrow().resumed;
            let mut state = state.subscribe();
            tokio::select! {
                go = state.wait_for(|now| now.resumed > times) => go.is_ok(),
                () = wait_for_close(socket) => false,
            }
        }
        ResponseStep::Silence => {
            wait_for_close(socket).await;
            false
        }
        ResponseStep::Close => false,
    }
}

/// Waits until the peer closes the connection.
async fn wait_for_close(socket: &mut TcpStream) {
    let mut ignored = [0; 1024];
    while socket.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<ReceivedRequest> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut request = ReceivedRequest {
        method,
        target,
        headers: headers.collect(),
        body: Vec::new(),
    };
    let length = request.values("content-length").first().copied();
    let length: usize = length.map_or(0, |length| length.parse().unwrap_or(0));
    buffer.drain(..end + 4);
    while buffer.len() < length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    request.body = buffer.drain(..length).collect();
    Some(request)
}

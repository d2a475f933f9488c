//! A small web server on loopback that says what it is told to, be it HTTP or not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::patience::soon;

/// How much of a long body is written at once.
static FLOOD: [u8; 64 * 1024] = [b'.'; 64 * 1024];

/// The server. It ends with this.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    /// How many requests have come.
    count: watch::Sender<usize>,
    /// How many connections are open.
    open: watch::Sender<usize>,
    /// How many requests are being answered.
    answering: watch::Sender<usize>,
    /// How often those who wait were let go on.
    gone_on: watch::Sender<usize>,
    flooded: AtomicU64,
}

/// A request that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `GET`, and so on.
    pub method: String,
    /// What stands behind it: a path, or for a proxy all of the URL.
    pub target: String,
    /// Names and values, as they were written.
    pub headers: Vec<(String, String)>,
    /// As long as it said it was.
    pub body: Vec<u8>,
}

/// What the server does about a request, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// Writes this.
    Bytes(Vec<u8>),
    /// Writes this many dots.
    Dots(u64),
    /// Waits for [`Web::go_on`].
    Wait,
    /// Says nothing more, and stays.
    Silence,
    /// Hangs up.
    Close,
}

impl Asked {
    /// All values of a header, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// A whole response.
pub fn page(status: &str, headers: &[&str], body: &[u8]) -> Vec<Say> {
    let length = format!("Content-Length: {}", body.len());
    let mut headers = headers.to_vec();
    headers.push(&length);
    vec![head(status, &headers), Say::Bytes(body.to_vec())]
}

/// The beginning of a response.
pub fn head(status: &str, headers: &[&str]) -> Say {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    text.push_str("\r\n");
    Say::Bytes(text.into_bytes())
}

/// A piece of a chunked body; the empty one ends it.
pub fn chunk(bytes: &[u8]) -> Say {
    let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
    piece.extend_from_slice(bytes);
    piece.extend_from_slice(b"\r\n");
    Say::Bytes(piece)
}

impl Web {
    /// Serves on a free port.
    pub async fn start(answer: impl Fn(&Asked) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let shared = Arc::new(Shared {
            asked: Mutex::default(),
            count: watch::Sender::new(0),
            open: watch::Sender::new(0),
            answering: watch::Sender::new(0),
            gone_on: watch::Sender::new(0),
            flooded: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), Arc::new(answer)));
        Web {
            address,
            shared,
            accepting,
        }
    }

    /// Where it is: `127.0.0.1:PORT`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for a request, counted from 0.
    pub async fn asked(&self, number: usize) -> Asked {
        let mut count = self.shared.count.subscribe();
        let come = count.wait_for(|count| *count > number);
        let _ = soon("a request", come).await;
        self.shared.asked()[number].clone()
    }

    /// How many requests have come.
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Lets everybody go on who waits.
    pub fn go_on(&self) {
        self.shared.gone_on.send_modify(|times| *times += 1);
    }

    /// How many dots were written.
    pub fn flooded(&self) -> u64 {
        self.shared.flooded.load(Ordering::Acquire)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        *self.shared.open.borrow()
    }

    /// How many requests are being answered.
    pub fn answering(&self) -> usize {
        *self.shared.answering.borrow()
    }

    /// Waits until no request is being answered: everything was said, or who asked is gone.
    pub async fn all_over(&self) {
        self.left(0).await;
    }

    /// Waits until so many requests are being answered.
    pub async fn left(&self, requests: usize) {
        let mut answering = self.shared.answering.subscribe();
        let over = answering.wait_for(|answering| *answering == requests);
        let _ = soon("the end of the other answers", over).await;
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = dyn Fn(&Asked) -> Vec<Say> + Send + Sync;

async fn accept(listener: TcpListener, shared: Arc<Shared>, answer: Arc<Answer>) {
    // They end with this task.
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        shared.open.send_modify(|open| *open += 1);
        let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
        connections.spawn(async move {
            serve(socket, &shared, &*answer).await;
            shared.open.send_modify(|open| *open -= 1);
        });
    }
}

async fn serve(mut socket: TcpStream, shared: &Shared, answer: &Answer) {
    let mut buffer = Vec::new();
    while let Some(asked) = read(&mut socket, &mut buffer).await {
        let says = answer(&asked);
        shared.asked().push(asked);
        shared.answering.send_modify(|answering| *answering += 1);
        shared.count.send_modify(|count| *count += 1);
        let mut goes_on = true;
        for say in says {
            goes_on = goes_on && carry_out(say, &mut socket, shared).await;
        }
        shared.answering.send_modify(|answering| *answering -= 1);
        if !goes_on {
            return;
        }
    }
}

/// Says whether the connection goes on.
async fn carry_out(say: Say, socket: &mut TcpStream, shared: &Shared) -> bool {
    match say {
        Say::Bytes(bytes) => socket.write_all(&bytes).await.is_ok(),
        Say::Dots(mut left) => {
            while left > 0 {
                let piece = left.min(FLOOD.len() as u64);
                if socket.write_all(&FLOOD[..piece as usize]).await.is_err() {
                    return false;
                }
                left -= piece;
                shared.flooded.fetch_add(piece, Ordering::AcqRel);
            }
            true
        }
        Say::Wait => {
            let mut gone_on = shared.gone_on.subscribe();
            let times = *gone_on.borrow_and_update();
            tokio::select! {
                go = gone_on.wait_for(|now| *now > times) => go.is_ok(),
                () = hang_up(socket) => false,
            }
        }
        Say::Silence => {
            hang_up(socket).await;
            false
        }
        Say::Close => false,
    }
}

/// Waits until the other side is gone.
async fn hang_up(socket: &mut TcpStream) {
    let mut ignored = [0; 1024];
    while socket.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
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
    let mut asked = Asked {
        method,
        target,
        headers: headers.collect(),
        body: Vec::new(),
    };
    let length = asked.values("content-length").first().copied();
    let length: usize = length.map_or(0, |length| length.parse().unwrap_or(0));
    buffer.drain(..end + 4);
    while buffer.len() < length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    asked.body = buffer.drain(..length).collect();
    Some(asked)
}

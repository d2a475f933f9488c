//! A TCP proxy that can be cut, stalled, half-closed and throttled.
//!
//! It listens on its own port and forwards every connection to the server. Each direction is one
//! forwarding task, which checks the link's [`State`] before each piece.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The most bytes forwarded at once.
const PIECE_BYTES: usize = 16 * 1024;

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// The current behaviour of a link, by [`Direction`].
type State = [Mode; 2];

/// The behaviour of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Open,
    /// Nothing is forwarded.
    Stalled,
    /// Bytes per second.
    Throttled(u32),
    /// The receiver sees the end of the stream.
    Closed,
    /// Open until a piece contains this text.
    OpenUntil(&'static str),
}

/// A link in front of a server. Dropping it cuts all connections.
#[derive(Debug)]
pub struct FaultyLink {
    url: String,
    state: watch::Sender<State>,
    /// The forwarding tasks; [`FaultyLink::cut`] aborts them, which closes their sockets.
    forwarders: Arc<Mutex<JoinSet<Option<()>>>>,
    accepting: JoinHandle<()>,
}

impl FaultyLink {
    /// Creates a link to the server at `address`.
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("cannot bind the link: {error}"));
        let own = listener.local_addr();
        let own = own.unwrap_or_else(|error| panic!("cannot get the link's address: {error}"));
        let (state, watched) = watch::channel(State::default());
        let forwarders = Arc::new(Mutex::new(JoinSet::new()));
        let accepting = tokio::spawn(accept(
            listener,
            address.to_owned(),
            watched,
            Arc::clone(&forwarders),
        ));
        FaultyLink {
            url: format!("ws://{own}"),
            state,
            forwarders,
            accepting,
        }
    }

    /// The URL to connect to instead of the server's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Forwards both directions without faults from now on.
    pub fn open(&self) {
        self.state.send_replace(State::default());
    }

    /// Forwards nothing in one direction; both ends stay connected.
    pub fn stall(&self, direction: Direction) {
        self.set(direction, Mode::Stalled);
    }

    /// Limits one direction to `bytes_per_second`.
    pub fn throttle(&self, direction: Direction, bytes_per_second: u32) {
        self.set(direction, Mode::Throttled(bytes_per_second));
    }

    /// Forwards to the client until a piece contains `text`, on any connection, then stalls.
    pub fn stall_at(&self, text: &'static str) {
        self.set(Direction::ToClient, Mode::OpenUntil(text));
    }

    /// Closes one direction; the other continues.
    pub fn half_close(&self, direction: Direction) {
        self.set(direction, Mode::Closed);
    }

    /// Drops all connections without a close frame. New ones are forwarded.
    pub async fn cut(&self) {
        let mut forwarders = std::mem::take(&mut *self.forwarders.lock());
        forwarders.shutdown().await;
    }

    fn set(&self, direction: Direction, mode: Mode) {
        self.state
            .send_modify(|state| state[direction as usize] = mode);
    }
}

impl Drop for FaultyLink {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    address: String,
    state: watch::Receiver<State>,
    forwarders: Arc<Mutex<JoinSet<Option<()>>>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&address).await else {
            continue;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let [up, down] = [Direction::ToServer, Direction::ToClient];
        let mut forwarders = forwarders.lock();
        forwarders.spawn(forward(up, from_client, to_server, state.clone()));
        forwarders.spawn(forward(down, from_server, to_client, state.clone()));
    }
}

/// Forwards one direction as its mode says. Returns at the end of the stream or of the link.
async fn forward(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
) -> Option<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mode = mode_other_than(Mode::Stalled, direction, &mut state).await?;
        if mode == Mode::Closed {
            let _ = to.shutdown().await;
            // Keep the half open: the other direction uses the same socket.
            mode_other_than(Mode::Closed, direction, &mut state).await;
            return None;
        }
        let read = tokio::select! {
            read = from.read(&mut piece) => read,
            changed = state.changed() => {
                changed.ok()?;
                continue;
            }
        };
        let Ok(read @ 1..) = read else {
            let _ = to.shutdown().await;
            return None;
        };
        // The link may have been stalled during the read.
        mode_other_than(Mode::Stalled, direction, &mut state).await?;
        if let Mode::OpenUntil(text) = mode {
            let mut windows = piece[..read].windows(text.len());
            if windows.any(|window| window == text.as_bytes()) {
                mode_other_than(mode, direction, &mut state).await?;
            }
        }
        to.write_all(&piece[..read]).await.ok()?;
        if let Mode::Throttled(bytes_per_second) = mode {
            let seconds = read as f64 / f64::from(bytes_per_second);
            // sleep: a throttled link delays on purpose
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }
}

/// Waits for another mode. Returns None at the end of the link.
async fn mode_other_than(
    mode: Mode,
    direction: Direction,
    state: &mut watch::Receiver<State>,
) -> Option<Mode> {
    let found = state.wait_for(|state| state[direction as usize] != mode);
    Some(found.await.ok()?[direction as usize])
}

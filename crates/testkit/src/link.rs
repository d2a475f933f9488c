//! A TCP connection that can be cut, stalled, half-closed and throttled.
//!
//! A link listens on a port of its own and passes every connection on to the server. Each
//! direction is a pump, a task that looks at the link's [`State`] before each piece it passes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How much is passed on at once.
const PIECE: usize = 16 * 1024;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// How a link behaves at the moment.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    to_server: Way,
    to_client: Way,
}

/// How one direction behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Open,
    /// Nothing is passed on; what comes waits.
    Stalled,
    /// So many bytes a second.
    Throttled(u32),
    /// The receiver is told that nothing more will come.
    Closed,
    /// Open, up to the first piece in which this is said.
    OpenUntil(&'static str),
}

/// A link in front of a server. Dropping it cuts it.
#[derive(Debug)]
pub struct Link {
    url: String,
    state: watch::Sender<State>,
    /// The pumps of all connections; [`Link::cut`] ends them, and with them their sockets.
    pumps: Arc<Mutex<JoinSet<()>>>,
    accepting: JoinHandle<()>,
}

impl Link {
    /// A link to the server at `address`.
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port for a link: {error}"));
        let own = listener.local_addr();
        let own = own.unwrap_or_else(|error| panic!("a link without an address: {error}"));
        let (state, watched) = watch::channel(State::default());
        let pumps = Arc::new(Mutex::new(JoinSet::new()));
        let accepting = tokio::spawn(accept(
            listener,
            address.to_owned(),
            watched,
            Arc::clone(&pumps),
        ));
        Link {
            url: format!("ws://{own}"),
            state,
            pumps,
            accepting,
        }
    }

    /// What to connect to instead of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Passes everything on as it comes, in both directions, from now on.
    pub fn open(&self) {
        self.state.send_replace(State::default());
    }

    /// Passes nothing on in one direction; both ends stay connected and hear nothing.
    pub fn stall(&self, direction: Direction) {
        self.set(direction, Way::Stalled);
    }

    /// Passes on so many bytes a second in one direction.
    pub fn throttle(&self, direction: Direction, bytes_per_second: u32) {
        self.set(direction, Way::Throttled(bytes_per_second));
    }

    /// Passes on to the client what comes, and from the first piece with these words in it
    /// nothing, whichever connection that is on.
    pub fn stall_at(&self, words: &'static str) {
        self.set(Direction::ToClient, Way::OpenUntil(words));
    }

    /// Ends one direction properly; the other goes on.
    pub fn half_close(&self, direction: Direction) {
        self.set(direction, Way::Closed);
    }

    /// Drops all connections without a word; new ones are passed on.
    pub async fn cut(&self) {
        let mut pumps = std::mem::take(&mut *lock(&self.pumps));
        pumps.shutdown().await;
    }

    fn set(&self, direction: Direction, way: Way) {
        self.state.send_modify(|state| match direction {
            Direction::ToServer => state.to_server = way,
            Direction::ToClient => state.to_client = way,
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    address: String,
    state: watch::Receiver<State>,
    pumps: Arc<Mutex<JoinSet<()>>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&address).await else {
            continue;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let mut pumps = lock(&pumps);
        pumps.spawn(pump(
            Direction::ToServer,
            from_client,
            to_server,
            state.clone(),
        ));
        pumps.spawn(pump(
            Direction::ToClient,
            from_server,
            to_client,
            state.clone(),
        ));
    }
}

/// Passes on what comes, the way the state says.
async fn pump(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
) {
    let mut piece = vec![0; PIECE];
    let way_of = |state: &State| match direction {
        Direction::ToServer => state.to_server,
        Direction::ToClient => state.to_client,
    };
    loop {
        let open = state.wait_for(|state| way_of(state) != Way::Stalled).await;
        let Ok(way) = open.map(|state| way_of(&state)) else {
            return;
        };
        if way == Way::Closed {
            let _ = to.shutdown().await;
            // Held, not dropped: the other direction goes on over the same socket.
            let _ = state.wait_for(|state| way_of(state) != Way::Closed).await;
            return;
        }
        let read = tokio::select! {
            read = from.read(&mut piece) => read,
            changed = state.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok(read @ 1..) = read else {
            let _ = to.shutdown().await;
            return;
        };
        // It may have been stalled while the piece was on its way.
        let open = state.wait_for(|state| way_of(state) != Way::Stalled);
        if open.await.map(drop).is_err() {
            return;
        }
        if let Way::OpenUntil(words) = way {
            let said = piece[..read]
                .windows(words.len())
                .any(|said| said == words.as_bytes());
            let opened = state.wait_for(|state| !said || way_of(state) != way);
            if opened.await.map(drop).is_err() {
                return;
            }
        }
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
        if let Way::Throttled(bytes_per_second) = way {
            let seconds = read as f64 / f64::from(bytes_per_second);
            // sleep: being slow is what a throttled link is for
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

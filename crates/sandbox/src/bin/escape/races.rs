//! Changes the arguments of `connect` while it runs.
#![expect(unsafe_code, reason = "arguments are changed by another thread")]

use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::net::{AddressFamily, SocketType};

/// How often a connection is attempted.
const ATTEMPTS: usize = 3000;

/// How many pairs of sockets are tried.
const ROUNDS: usize = 60;

/// The number of attempts with the same pair of sockets.
const ROUND: usize = 20;

/// The size of `struct sockaddr_un`, in words.
const WORDS: usize = 14;

/// The address, which two threads use.
static ADDRESS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn set_address(words: &[u64; WORDS]) {
    for (to, from) in ADDRESS.iter().zip(words) {
        to.store(*from, Ordering::Relaxed);
    }
}

fn words(bytes: &[u8]) -> [u64; WORDS] {
    let mut padded = [0; 8 * WORDS];
    padded[..bytes.len()].copy_from_slice(bytes);
    let (chunks, _) = padded.as_chunks();
    let mut words = [0; WORDS];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_ne_bytes(*chunk);
    }
    words
}

fn unix_address(path: &str) -> [u64; WORDS] {
    let family = (libc::AF_UNIX as u16).to_ne_bytes();
    words(&[&family, path.as_bytes()].concat())
}

fn connect(number: i32, length: usize) -> io::Result<()> {
    // SAFETY: the address is static, and the call copies it.
    let result = unsafe { libc::connect(number, ADDRESS.as_ptr().cast(), length as u32) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Runs `change` again and again on another thread while `attempt` runs.
fn while_changing(
    change: impl Fn(usize) + Sync,
    attempt: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let (done, changed) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                changed.store(round > 1, Ordering::Relaxed);
                if done.load(Ordering::Relaxed) {
                    break;
                }
                change(round);
            }
        });
        while !changed.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let result = attempt();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Connects to a path of its own, which another thread replaces by the other one. Fails with the error of
/// the last attempt if none reached the other.
pub(crate) fn address(own: &str, other: &str) -> io::Result<()> {
    let _listener = UnixListener::bind(own)?;
    let paths = [unix_address(own), unix_address(other)];
    set_address(&paths[0]);
    let mut error = io::Error::other("no error");
    while_changing(
        |round| set_address(&paths[round % 2]),
        || {
            for _ in 0..ATTEMPTS {
                let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
                rustix::io::ioctl_fionbio(&socket, true)?;
                match connect(socket.as_raw_fd(), 110) {
                    Ok(()) => {
                        let connected = UnixStream::from(socket);
                        if connected.peer_addr()?.as_pathname() == Some(other.as_ref()) {
                            return Ok(());
                        }
                    }
                    // The queue of its own listener is full.
                    Err(failed) if failed.kind() == io::ErrorKind::WouldBlock => {}
                    Err(failed) => error = failed,
                }
            }
            Err(error)
        },
    )
}

/// Connects an Internet socket to a port of its own. Another thread replaces both the descriptor by a unix
/// socket and the address by a path.
pub(crate) fn descriptor(other: &str) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let family = (libc::AF_INET as u16).to_ne_bytes();
    let address = [&family[..], &port.to_be_bytes(), &[127, 0, 0, 1]].concat();
    let addresses = [words(&address), unix_address(other)];
    let socket = |family| {
        // A blocking one would wait when the queue of the listener is full.
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        io::Result::Ok(socket)
    };
    let mut error = io::Error::other("no error");
    for _ in 0..ROUNDS {
        let sockets = [socket(AddressFamily::INET)?, socket(AddressFamily::UNIX)?];
        let number = rustix::io::fcntl_dupfd_cloexec(&sockets[0], 100)?;
        let shared = number.as_raw_fd();
        set_address(&addresses[0]);
        let outcome = while_changing(
            |round| {
                let index = round % 2;
                set_address(&addresses[index]);
                // SAFETY: `shared` is open, and whatever it refers to is a socket of our own.
                unsafe { libc::dup2(sockets[index].as_raw_fd(), shared) };
            },
            || {
                let mut result = Ok(());
                for _ in 0..ROUND {
                    std::thread::yield_now();
                    result = connect(shared, 110);
                }
                result
            },
        );
        if let Err(failed) = outcome {
            error = failed;
        }
        let [_, unix] = sockets;
        if UnixStream::from(unix).peer_addr().is_ok() {
            return Ok(());
        }
    }
    Err(error)
}

//! Makes the connections of sandboxed processes that have unix sockets.
//!
//! A unix socket is reached by its path, also on a read-only mount, so without a network a sandboxed
//! process must not connect by itself: it would reach every socket of the host that it sees. Mounts
//! can't prevent that, and a seccomp filter can't read the address. The filter therefore reports
//! `listen` and `connect` to the server, and this module answers.
//!
//! - `listen`: records the socket's file, if the socket was created in the sandbox, and lets the kernel
//!   continue.
//! - `connect`: copies the address and makes the connection with a duplicate of the caller's socket.
//!   A path must lead to a recorded file, and the connection is made through the descriptor that was
//!   recorded. Abstract names and Internet addresses belong to the socket's network namespace.
//!
//! Nothing that the caller changes meanwhile has an effect: the kernel never reads the address again,
//! and the duplicate stays the same socket. The caller's path only selects one of the sandbox's own
//! sockets.
//!
//! - [`notifying_process`]: access to the process that made a call
//! - [`bound_sockets`]: the recorded files

mod bound_sockets;
mod notifying_process;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use outpost_process::ReadableFd;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use self::bound_sockets::BoundSockets;
pub(super) use self::notifying_process::is_accessible;
use self::notifying_process::{Target, UnixAddress};
use super::seccomp::{Listener, Notification, Pending, Reply};
use super::sys;

/// The maximum number of calls of one sandbox that are answered at the same time, each on a thread of
/// its own: a connection may wait for its listener, and a path may be on a file system that hangs.
/// Further calls wait.
const MAX_CALLS: usize = 16;

/// The maximum number of calls of all sandboxes that are answered at the same time. One call of each sandbox
/// doesn't count, so that others can't keep it from connecting. Further calls fail with `EAGAIN`.
const MAX_ALL_CALLS: usize = 256;

/// The calls of all sandboxes of this program.
static ALL_CALLS: Semaphore = Semaphore::const_new(MAX_ALL_CALLS);

/// Enough for the deepest call of [`answer`] several times over.
const STACK_SIZE: usize = 128 * 1024;

/// Answers the calls of one sandbox until it is dropped. Later calls fail with `ENOSYS`.
#[derive(Debug)]
pub(super) struct Supervisor {
    /// The thread ends when no process of the sandbox lives.
    task: JoinHandle<()>,
}

impl Supervisor {
    /// Starts a task on the runtime of the calling task.
    pub(super) fn start(listener: OwnedFd) -> io::Result<Self> {
        let listener = Listener::new(listener);
        let readable = ReadableFd::new(listener.descriptor())?;
        let task = tokio::spawn(serve(listener, readable));
        Ok(Self { task })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns permission for a call of a sandbox with `others` calls in progress; none if there are too many in
/// all.
fn admit(all: &Semaphore, others: usize) -> Option<Option<SemaphorePermit<'_>>> {
    match others {
        0 => Some(None),
        _ => all.try_acquire().ok().map(Some),
    }
}

async fn serve(listener: Listener, readable: ReadableFd) {
    let bound = Arc::new(Mutex::new(BoundSockets::default()));
    let slots = Arc::new(Semaphore::new(MAX_CALLS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        match listener.pending() {
            Ok(Pending::Call) => {}
            Ok(Pending::Nothing) => {
                if readable.readable().await.is_err() {
                    return;
                }
                continue;
            }
            Ok(Pending::Ended) | Err(_) => return,
        }
        // It fails if the caller was killed meanwhile.
        let Ok(call) = listener.recv() else { continue };
        // This call has a slot too.
        let others = MAX_CALLS - 1 - slots.available_permits();
        let Some(admitted) = admit(&ALL_CALLS, others) else {
            tracing::debug!(
                limit = MAX_ALL_CALLS,
                "too many connections of sandboxed processes"
            );
            listener.reply(&call, Reply::Failed(Errno::AGAIN));
            continue;
        };
        let (answering, bound) = (listener.clone(), Arc::clone(&bound));
        let thread = thread::Builder::new().name("connect".to_owned());
        let started = thread.stack_size(STACK_SIZE).spawn(move || {
            let reply = answer(&answering, &call, &bound);
            answering.reply(&call, reply.unwrap_or_else(Reply::Failed));
            drop((slot, admitted));
        });
        if started.is_err() {
            listener.reply(&call, Reply::Failed(Errno::AGAIN));
        }
    }
}

fn answer(
    listener: &Listener,
    call: &Notification,
    bound: &Mutex<BoundSockets>,
) -> Result<Reply, Errno> {
    let target = Target::new(call.thread);
    let socket = target.duplicate(call.arguments[0])?;
    let family = rustix::net::sockopt::socket_domain(&socket)?;
    if call.call == libc::SYS_listen {
        if family == AddressFamily::UNIX
            && let Some(file) = target.own_socket_file(&socket)?
            && listener.is_valid(call)
        {
            bound.lock().insert(file)?;
        }
        return Ok(Reply::Continue);
    }
    let address = target.read_address(call.arguments[1], call.arguments[2])?;
    let path = match family {
        AddressFamily::INET | AddressFamily::INET6 => None,
        AddressFamily::UNIX => match UnixAddress::parse(&address)? {
            UnixAddress::Abstract => None,
            UnixAddress::Path(path) => Some(target.path(path)?),
        },
        _ => return Err(Errno::PERM),
    };
    // All that was read belongs to the caller only if it still waits: another process may have got its
    // id.
    if !listener.is_valid(call) {
        return Err(Errno::SRCH);
    }
    let Some(path) = path else {
        return sys::connect(&socket, &address).map(|()| Reply::Done);
    };
    // Not under the lock, because the file system may not answer.
    let found = path.open()?;
    let file = bound.lock().find(&found)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    sys::connect(&socket, &UnixAddress::encode(&path)).map(|()| Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_call_of_a_sandbox_is_always_admitted() {
        let all = Semaphore::new(2);
        let admitted: Vec<_> = (0..4).map(|others| admit(&all, others)).collect();
        let is_admitted: Vec<_> = admitted.iter().map(Option::is_some).collect();
        assert_eq!(is_admitted, [true, true, true, false]);
        assert!(admit(&all, 0).is_some(), "of another sandbox");
        drop(admitted);
        assert!(admit(&all, 1).is_some());
    }
}

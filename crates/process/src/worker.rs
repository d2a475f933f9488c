//! A permanent thread that starts programs.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::launch::SpawnWorker;
use crate::queue::Queue;
use crate::spawn_context::SpawnContext;
use crate::sys::mask;

/// Far more than a start needs, even in an unoptimized build.
const STACK_SIZE: usize = 256 * 1024;

/// Starts a thread that serves `queue` until it is closed.
pub(crate) fn start(context: Arc<SpawnContext>, queue: Arc<Queue>) -> io::Result<JoinHandle<()>> {
    // If the clone resets all handlers, a SIGCHLD handler cannot run in a child.
    let handlers_are_reset = context.signal_reset.by_clone;
    let mut launcher = SpawnWorker::new(context, Arc::clone(&queue))?;
    let work = move || {
        let mut masked = mask::block_all();
        if handlers_are_reset {
            masked = masked.and_then(|()| mask::unblock_sigchld());
        }
        if let Err(error) = masked {
            tracing::error!(%error, "cannot block signals in spawner thread");
        }
        while let Some(job) = queue.next() {
            if job.reply.is_closed() {
                continue;
            }
            // If the receiver is gone, the returned child is dropped, which kills it.
            let _ = job.reply.send(launcher.launch(&job.prepared));
            launcher.prepare_next();
        }
    };
    thread::Builder::new()
        .name("spawner".into())
        .stack_size(STACK_SIZE)
        .spawn(work)
}

//! A permanent thread that starts programs.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::launch::Launcher;
use crate::means::Means;
use crate::queue::Queue;
use crate::sys::mask;

/// Far more than starting needs, also without optimization.
const THREAD_STACK: usize = 256 * 1024;

/// Starts a thread that serves `queue` until it is closed.
pub(crate) fn start(means: Arc<Means>, queue: Arc<Queue>) -> io::Result<JoinHandle<()>> {
    let mut launcher = Launcher::new(means, Arc::clone(&queue))?;
    let work = move || {
        if let Err(error) = mask::block_all() {
            tracing::error!(%error, "a spawner thread can't block signals");
        }
        while let Some(job) = queue.next() {
            if job.reply.is_closed() {
                continue;
            }
            // A child whose asker has gone meanwhile comes back and is killed by being dropped.
            let _ = job.reply.send(launcher.launch(&job.prepared));
            launcher.rest();
        }
    };
    thread::Builder::new()
        .name("spawner".into())
        .stack_size(THREAD_STACK)
        .spawn(work)
}

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
    // A handler for them can't run in a child that has none.
    let no_handlers = means.dispositions.cleared;
    let mut launcher = Launcher::new(means, Arc::clone(&queue))?;
    let work = move || {
        let hear = || match no_handlers {
            true => mask::hear_of_children(),
            false => Ok(()),
        };
        if let Err(error) = mask::block_all().and_then(|()| hear()) {
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

//! The processes that calls have ids for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outpost_client::{Error, Place, Process, Start, Terminate};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Bounds, Mishap, follow::Follow};

/// Every process that was started here and isn't forgotten, by its id.
pub(super) struct Roster {
    /// What ids begin with. Another one for each server, so that an id from
    /// before a restart is never somebody else's.
    prefix: String,
    inside: Mutex<Inside>,
    /// Those who listen to processes; they end with them, or with this.
    listeners: TaskTracker,
    done: CancellationToken,
}

#[derive(Default)]
struct Inside {
    /// By number.
    jobs: BTreeMap<u64, Arc<Job>>,
    /// Places that are taken for processes that are being started.
    starting: usize,
    last: u64,
}

/// A process with an id.
pub(super) struct Job {
    pub(super) id: String,
    number: u64,
    /// As it was asked for.
    pub(super) command: String,
    pub(super) tty: bool,
    pub(super) process: Process,
    pub(super) follow: Arc<Follow>,
}

impl Roster {
    pub(super) fn new(prefix: String) -> Self {
        Roster {
            prefix,
            inside: Mutex::default(),
            listeners: TaskTracker::new(),
            done: CancellationToken::new(),
        }
    }

    /// Starts a process, and follows it.
    pub(super) async fn start(
        &self,
        place: &dyn Place,
        start: Start,
        command: String,
        tty: bool,
        bounds: &Bounds,
    ) -> Result<Arc<Job>, Mishap> {
        let seat = self.seat(bounds)?;
        let process = place.start(start).await?;
        let follow = Arc::new(Follow::new(bounds.keep));
        let listener = Arc::clone(&follow);
        let (events, done) = (process.events(), self.done.clone());
        self.listeners.spawn(async move {
            tokio::select! {
                () = listener.listen(events) => {}
                () = done.cancelled() => {}
            }
        });
        let mut inside = self.inside();
        inside.last += 1;
        let number = inside.last;
        let job = Arc::new(Job {
            id: format!("{}-{number}", self.prefix),
            number,
            command,
            tty,
            process,
            follow,
        });
        inside.jobs.insert(number, Arc::clone(&job));
        inside.forget(bounds);
        drop(inside);
        drop(seat);
        Ok(job)
    }

    fn seat(&self, bounds: &Bounds) -> Result<Seat<'_>, Mishap> {
        let mut inside = self.inside();
        let running = inside.jobs.values().filter(|job| job.is_held()).count();
        if running + inside.starting >= bounds.running {
            return Err(Mishap::TooManyProcesses {
                running: bounds.running,
            });
        }
        inside.starting += 1;
        Ok(Seat(self))
    }

    /// Finds a process by the id that was given out for it.
    pub(super) fn find(&self, id: &str) -> Result<Arc<Job>, Mishap> {
        let number = id
            .strip_prefix(&self.prefix)
            .and_then(|rest| rest.strip_prefix('-')?.parse().ok());
        let inside = self.inside();
        let job = number.and_then(|number: u64| inside.jobs.get(&number));
        job.cloned()
            .ok_or_else(|| Mishap::UnknownProcess { id: id.to_owned() })
    }

    /// All of them, oldest first.
    pub(super) fn jobs(&self) -> Vec<Arc<Job>> {
        self.inside().jobs.values().cloned().collect()
    }

    /// Forgets one that nobody will ask for.
    pub(super) fn forget(&self, job: &Job) {
        self.inside().jobs.remove(&job.number);
    }

    /// Lets go of everything; what runs is ended by that.
    pub(super) async fn close(&self) {
        self.done.cancel();
        self.inside().jobs.clear();
        self.listeners.close();
        self.listeners.wait().await;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Forgets those that ended first, until the rest is within its bounds.
    fn forget(&mut self, bounds: &Bounds) {
        let ended = self.jobs.values().filter(|job| !job.is_held());
        let mut ended: Vec<_> = ended
            .map(|job| (job.number, job.follow.known().transcript.kept()))
            .collect();
        let mut bytes: usize = ended.iter().map(|(_, kept)| kept).sum();
        ended.reverse();
        while ended.len() > bounds.ended || bytes > bounds.ended_bytes {
            let Some((number, kept)) = ended.pop() else {
                return;
            };
            self.jobs.remove(&number);
            bytes -= kept;
        }
    }
}

/// A place for a process that is being started.
struct Seat<'a>(&'a Roster);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.inside().starting -= 1;
    }
}

impl Job {
    /// Whether there is something to be ended: it runs, or what it has left holds
    /// its outputs.
    fn is_held(&self) -> bool {
        !self.follow.state().is_over()
    }

    /// Ends it with its whole tree, and what it left if it has exited. Says
    /// whether it was running.
    pub(super) async fn end(&self, grace: Duration, bounds: &Bounds) -> Result<bool, Error> {
        let running = self.follow.state().is_running();
        let how = Terminate {
            grace: Some(grace),
            tree: true,
        };
        let asked = match self.process.terminate_with(how).await {
            // Older servers know no grace.
            Err(Error::NotAnnounced { .. }) => self.process.terminate().await,
            asked => asked,
        };
        match asked {
            // What is forgotten elsewhere has ended.
            Ok(_) | Err(Error::UnknownProcess { .. }) => {}
            Err(error) => return Err(error),
        }
        let over = self.follow.until(|known| known.state.is_over());
        let _ = timeout(grace + bounds.last_words, over).await;
        Ok(running)
    }
}

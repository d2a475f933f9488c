//! What outlives a connection.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use outpost_journal::{self as journal, Seq};
use outpost_protocol::{Method, ServerCapabilities, Surroundings, TerminateParams, Welcome};
use tokio::sync::{Notify, OnceCell, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Cause, Dialer, RemoteOptions, Standing,
    acks::{Acks, Policy},
    line::{Line, Starting},
    recovery::LineNumber,
    strays::Strays,
    tracked::Tracked,
    unattended::Unattended,
};
use crate::Error;

/// What everybody who has to do with a remote place shares. Its tasks hold it
/// too, and end when `ending` is cancelled.
pub(super) struct Core {
    pub(super) options: RemoteOptions,
    pub(super) dialer: Arc<dyn Dialer>,
    pub(super) standing: watch::Sender<Standing>,
    /// The current connection, or the one that may become it.
    line: Mutex<Option<Arc<Line>>>,
    /// The number of that: what an older one says doesn't count.
    current: AtomicU64,
    /// What the server said when the session was opened.
    pub(super) welcome: OnceLock<Welcome>,
    /// What it said of where it is, once somebody had to ask.
    pub(super) surroundings: OnceCell<Surroundings>,
    acked: AtomicBool,
    pub(super) processes: Mutex<HashMap<String, Arc<Tracked>>>,
    strays: Mutex<Strays>,
    pub(super) acks: Mutex<Acks>,
    pub(super) unattended: Mutex<Unattended>,
    /// Wakes the task that acknowledges: something is due earlier than it
    /// believes.
    pub(super) acks_owed: Notify,
    /// What makes our names different from those of another client of the same
    /// session.
    pub(super) prefix: String,
    pub(super) names: AtomicU64,
    /// Somebody else has the session now.
    pub(super) taken_over: AtomicBool,
    pub(super) tasks: TaskTracker,
    pub(super) ending: CancellationToken,
}

impl Core {
    pub(super) fn new(dialer: Arc<dyn Dialer>, options: RemoteOptions) -> Self {
        let limits = &options.limits;
        let policy = Policy {
            bytes: limits.ack_bytes,
            within: limits.ack_within,
            close_within: limits.ack_close_within,
        };
        let random = uuid::Uuid::new_v4().simple().to_string();
        Core {
            dialer,
            standing: watch::Sender::new(Standing::Recovering),
            line: Mutex::default(),
            current: AtomicU64::new(0),
            welcome: OnceLock::new(),
            surroundings: OnceCell::new(),
            acked: AtomicBool::new(false),
            processes: Mutex::default(),
            strays: Mutex::default(),
            acks: Mutex::new(Acks::new(policy)),
            unattended: Mutex::new(Unattended::new(limits.attach_within)),
            acks_owed: Notify::new(),
            prefix: random[..8].to_owned(),
            names: AtomicU64::new(0),
            taken_over: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            options,
        }
    }

    /// A new connection takes the place of the one before.
    pub(super) fn next_line(&self) -> Arc<Line> {
        let number = self.current.fetch_add(1, Ordering::AcqRel) + 1;
        let line = Arc::new(Line::new(LineNumber(number)));
        *lock(&self.line) = Some(Arc::clone(&line));
        line
    }

    pub(super) fn is_current(&self, line: &Line) -> bool {
        line.number == LineNumber(self.current.load(Ordering::Acquire))
    }

    /// The connection that calls can be made on; waits while it is being
    /// brought back.
    pub(super) async fn line(&self) -> Result<Arc<Line>, Error> {
        let mut standing = self.standing.subscribe();
        loop {
            let now = standing.borrow_and_update().clone();
            match now {
                Standing::Connected => {
                    let line = lock(&self.line).clone();
                    // One that is lost already is about to be replaced.
                    if let Some(line) = line.filter(|line| !line.is_lost()) {
                        return Ok(line);
                    }
                }
                Standing::Failed { reason, .. } => return Err(Error::Disconnected { reason }),
                Standing::Recovering => {}
            }
            if standing.changed().await.is_err() {
                return Err(Error::disconnected("the place is gone"));
            }
        }
    }

    /// The current connection, if calls can be made on it now.
    pub(super) fn line_now(&self) -> Option<Arc<Line>> {
        let connected = *self.standing.borrow() == Standing::Connected;
        lock(&self.line).clone().filter(|_| connected)
    }

    /// Everything fails, with the same words.
    pub(super) fn fail(&self, reason: &Arc<str>) {
        let reason = Arc::clone(reason);
        self.standing.send_replace(Standing::Failed {
            reason: Arc::clone(&reason),
            cause: match self.taken_over.load(Ordering::Acquire) {
                true => Cause::TakenOver,
                false => Cause::Lost,
            },
        });
        for tracked in lock(&self.processes).drain().map(|(_, tracked)| tracked) {
            tracked.fail(Error::Disconnected {
                reason: Arc::clone(&reason),
            });
        }
    }

    /// The server has answered the first `initialize`.
    pub(super) fn opened(&self, welcome: Welcome) {
        let wanted = self.options.delivery == super::DeliveryChoice::Auto;
        let acked = wanted && welcome.capabilities.acked;
        self.acked.store(acked, Ordering::Release);
        let _ = self.welcome.set(welcome);
        self.standing.send_replace(Standing::Connected);
    }

    pub(super) fn is_acked(&self) -> bool {
        self.acked.load(Ordering::Acquire)
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.welcome.get()?.session_id.as_deref()
    }

    pub(super) fn capabilities(&self) -> ServerCapabilities {
        let welcome = self.welcome.get();
        welcome
            .map(|welcome| welcome.capabilities)
            .unwrap_or_default()
    }

    pub(super) fn record_limits(&self) -> journal::Limits {
        let limits = &self.options.limits;
        journal::Limits {
            retain_bytes: limits.retain_bytes,
            window_bytes: match self.is_acked() {
                true => limits.window_bytes,
                false => limits.push_window_bytes,
            },
            ..journal::Limits::default()
        }
    }

    pub(super) fn next_name(&self) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", self.prefix)
    }

    /// Every process that isn't over.
    pub(super) fn alive(&self) -> Vec<Arc<Tracked>> {
        lock(&self.processes).values().cloned().collect()
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Tracked>> {
        lock(&self.processes).get(id).cloned()
    }

    /// Listens to a process from now on.
    pub(super) fn follow(&self, tracked: &Arc<Tracked>) {
        let id = tracked.id().to_owned();
        lock(&self.processes).insert(id, Arc::clone(tracked));
    }

    /// The process of that name, as it is known or is about to be; says whether
    /// it is known only from now on.
    pub(super) fn meet(self: &Arc<Self>, id: &str, after: Seq) -> (Arc<Tracked>, bool) {
        let mut processes = lock(&self.processes);
        if let Some(tracked) = processes.get(id) {
            return (Arc::clone(tracked), false);
        }
        let tracked = Tracked::found(self, id, after);
        lock(&self.unattended).attached(id);
        processes.insert(id.to_owned(), Arc::clone(&tracked));
        (tracked, true)
    }

    /// The session has ended with everything in it, and the server says no more
    /// of that.
    pub(super) fn session_ended(&self) {
        let processes: Vec<_> = lock(&self.processes).drain().collect();
        for (_, tracked) in processes {
            tracked.fail(Error::disconnected("the session was closed"));
        }
    }

    /// Forgets a process, unless another one has its name now.
    pub(super) fn remove(&self, tracked: &Arc<Tracked>) {
        let mut processes = lock(&self.processes);
        let same = |known: &Arc<Tracked>| Arc::ptr_eq(known, tracked);
        if processes.get(tracked.id()).is_some_and(same) {
            processes.remove(tracked.id());
        }
    }

    /// Forgets a process that is over and that nobody has a handle on.
    pub(super) fn forget(&self, tracked: &Arc<Tracked>) {
        if tracked.record.is_over() && !tracked.has_handle() {
            self.remove(tracked);
        }
    }

    /// One process has failed here, and the others go on. Only what would end
    /// with its handle is ended: anything else is somebody's work.
    pub(super) fn fail_one(&self, tracked: &Arc<Tracked>, error: Error) {
        if tracked.is_awaited() {
            // Whoever waits for it is told.
            tracing::debug!(process = tracked.id(), %error, "a process is not there");
        } else {
            tracing::warn!(process = tracked.id(), %error, "a process is given up");
        }
        let ends = tracked.ends_with_us();
        self.remove(tracked);
        tracked.fail(error);
        self.strays().add(tracked.id());
        if ends {
            self.end_unwanted(tracked.id());
        }
    }

    /// A start has been answered that nobody waits for any more.
    pub(super) fn started_for_nobody(&self, starting: &Starting, refused: bool) {
        if refused {
            // Whatever has this name now is not of this start.
            self.strays().closed(&starting.id);
        } else if !starting.made_up {
            self.end_unwanted(&starting.id);
        }
    }

    /// Tells the server to end a process that nobody wants: now, or as soon as
    /// there is a connection.
    pub(super) fn end_unwanted(&self, id: &str) {
        self.strays().add_unsettled(id.to_owned());
        if let Some(line) = self.line_now() {
            line.settle(Method::ProcessTerminate, &terminate(id), id);
        }
    }

    /// Processes that may have been started, and that nobody will hear of.
    pub(super) fn add_strays(&self, ids: Vec<String>) {
        let mut strays = self.strays();
        for id in ids {
            strays.add(&id);
            strays.add_unsettled(id);
        }
    }

    pub(super) fn strays(&self) -> MutexGuard<'_, Strays> {
        lock(&self.strays)
    }

    /// Where a resumed session goes on with each process.
    pub(super) fn resume_from(&self) -> BTreeMap<String, u64> {
        if !self.is_acked() {
            return BTreeMap::new();
        }
        let mut from: BTreeMap<_, _> = lock(&self.acks).closes().collect();
        for tracked in self.alive() {
            from.insert(tracked.id().to_owned(), tracked.ackable().0);
        }
        from
    }
}

pub(super) fn terminate(id: &str) -> TerminateParams {
    TerminateParams {
        process_id: id.to_owned(),
        grace_ms: None,
        tree: false,
        session_id: None,
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

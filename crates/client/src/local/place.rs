//! The local place.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outpost_engine as engine;
use outpost_engine::{
    Delivery, Departure, Engine, Epoch, Link, Purpose, Seq, ServerEnvironment, Session,
    SessionOptions, Spawner, SpawnerOptions, State, Ttl, Watcher as _,
};
use outpost_fetch::Fetcher;
use outpost_files::Clerk;
use outpost_journal as journal;
use outpost_protocol::{
    EnvironmentInfo, PathUri, ProcessEntry, RpcError, SandboxParams, Surroundings,
};
use tokio::runtime::Handle as Runtime;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    LocalCabinet, LocalOptions, confinement, host, http, listing,
    pump::{Bell, Pump},
    refusal,
    reins::LocalReins,
    terms,
};
use crate::{
    Error, Files, HttpRequest, HttpResponse, Pending, Place, Process, Start,
    process::{Handle, Reins},
    record::Record,
};

/// Why everything fails once a place was closed.
pub(super) const CLOSED: &str = "the place was closed";

/// Processes of this program. Clones name the same place; when the last of them
/// is gone, with all its processes, everything that still runs is killed.
/// [`Place::close`] ends it in good order.
#[derive(Clone)]
pub struct Local {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    engine: Engine,
    pub(super) session: Session,
    epoch: Epoch,
    environment: ServerEnvironment,
    info: EnvironmentInfo,
    sandbox_level: engine::sandbox::Level,
    cwd: PathBuf,
    limits: journal::Limits,
    close_within: Duration,
    /// Cancelled when the place is closed.
    closed: CancellationToken,
    fetcher: Fetcher,
    processes: Mutex<HashMap<String, Known>>,
    /// Counts the names that are made up.
    names: AtomicU64,
    /// The pumps; they end with their processes.
    tasks: TaskTracker,
    runtime: Runtime,
}

/// A process that somebody here has a handle on, or that isn't over.
struct Known {
    record: Arc<Record>,
    process: engine::Process,
    bell: Bell,
    handle: Weak<Handle>,
}

/// There is no connection that could be probed or replaced, and what was started
/// is taken over by whoever started it.
struct NoLink;

impl Link for NoLink {
    fn probe(&self) {}
    fn replaced(&self) {}
    fn adopt(&self, _: &Session, _: Epoch, _: &engine::Process) {}
}

impl Local {
    /// A place in this program. Must be called inside a tokio runtime, and lives
    /// no longer than that.
    pub fn new(options: LocalOptions) -> Result<Self, Error> {
        let unprepared = |error| Error::Unprepared(Arc::new(error));
        let spawner = Spawner::new(SpawnerOptions {
            trees: options.trees,
            keeper: options.keeper,
            child_open_files: options.child_open_files,
            ..SpawnerOptions::default()
        })
        .map_err(unprepared)?;
        let cwd = match options.cwd {
            Some(cwd) => cwd,
            None => std::env::current_dir().map_err(unprepared)?,
        };
        let info = host::look(&cwd, spawner.tree_kind());
        let limits = journal::Limits {
            retain_bytes: options.limits.retain_bytes,
            retain_chunks: options.limits.retain_chunks,
            window_bytes: options.limits.window_bytes,
        };
        let variables = options
            .environment
            .unwrap_or_else(|| std::env::vars_os().collect());
        let engine = Engine::with_sandbox(
            spawner,
            options
                .stages
                .map(|stages| engine::sandbox::Sandbox::new(stages, options.sandbox_level)),
            options.limits,
        );
        let session = SessionOptions {
            ttl: Ttl::Unlimited,
            label: None,
            // The engine keeps its copy until the pump has everything.
            delivery: Delivery::Acked,
        };
        let opened = engine.open_session(session, Arc::new(NoLink));
        let (session, epoch) = opened.ok_or_else(|| Error::from(RpcError::overloaded()))?;
        Ok(Local {
            inner: Arc::new(Inner {
                engine,
                session,
                epoch,
                environment: ServerEnvironment::new(variables),
                info,
                cwd,
                limits,
                sandbox_level: options.sandbox_level,
                close_within: options.close_within,
                closed: CancellationToken::new(),
                fetcher: Fetcher::new(),
                processes: Mutex::default(),
                names: AtomicU64::new(0),
                tasks: TaskTracker::new(),
                runtime: Runtime::current(),
            }),
        })
    }
}

impl Place for Local {
    fn start(&self, start: Start) -> Pending<'_, Process> {
        Box::pin(async move {
            self.inner.check_open()?;
            let started = self.inner.start(start).await;
            started.map_err(|error| Error::from(error).of_start())
        })
    }

    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process> {
        let found = self.inner.check_open();
        let found = found.and_then(|()| self.inner.attach(id, Seq(after_seq)));
        Box::pin(async move { found })
    }

    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>> {
        Box::pin(async {
            self.inner.check_open()?;
            Ok(listing::list(&self.inner.session))
        })
    }

    fn environment(&self) -> Pending<'_, Surroundings> {
        Box::pin(async {
            self.inner.check_open()?;
            let found = self.inner.engine.confining_means().await;
            let mut info = self.inner.info.clone();
            info.capabilities.sandboxed_file_streaming = found.is_ok();
            info.sandbox = Some(confinement::support(self.inner.sandbox_level, found));
            Ok(info.into())
        })
    }

    fn files(&self) -> Files {
        Files::new(Arc::new(LocalCabinet::of(Arc::clone(&self.inner))))
    }

    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse> {
        let inner = &self.inner;
        Box::pin(async {
            inner.check_open()?;
            http::request(&inner.fetcher, &inner.environment, &inner.closed, request).await
        })
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(self.inner.close())
    }
}

impl Inner {
    /// Where relative paths begin.
    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.closed.is_cancelled() {
            return Err(Error::disconnected(CLOSED));
        }
        Ok(())
    }

    /// Somebody who does file operations, and can do no more than the sandbox grants.
    pub(super) async fn clerk(
        &self,
        sandbox: Option<&SandboxParams>,
        purpose: Purpose,
        files: outpost_files::Files,
    ) -> Result<(Clerk, Departure), RpcError> {
        let policy = sandbox.and_then(|sandbox| confinement::policy(sandbox, &self.cwd));
        let Some(policy) = policy else {
            return Ok((self.engine.free_clerk(files), Departure::default()));
        };
        let tmpdir = self.environment.get("TMPDIR").map(ToOwned::to_owned);
        let clerk = self.engine.confined_clerk(policy, tmpdir, purpose, files);
        clerk.await.map_err(|error| refusal::of_start(&error))
    }

    async fn close(&self) -> Result<(), Error> {
        self.closed.cancel();
        self.engine.end_session(&self.session).await;
        let within = self.close_within;
        let gone = self.engine.shutdown(within).await;
        if !gone {
            self.engine.kill_all();
        }
        // A session that ends lets go of its owner, so the pumps have not heard of
        // the last events.
        for known in self.processes().values() {
            if known.process.summary().state == State::Closed {
                known.bell.news();
            } else {
                known.record.fail(Error::disconnected(CLOSED));
            }
        }
        self.tasks.close();
        if gone {
            Ok(())
        } else {
            let attempt = "ending what runs here";
            Err(Error::TimedOut { attempt, within })
        }
    }

    async fn start(self: &Arc<Self>, mut start: Start) -> Result<Process, RpcError> {
        let id = start.id.take().unwrap_or_else(|| {
            let number = self.names.fetch_add(1, Ordering::Relaxed) + 1;
            format!("local-{number}")
        });
        let cwd = start.cwd.take().unwrap_or_else(|| self.cwd.clone());
        // Relative to where the place is, as it would be for any program here.
        let cwd = PathUri::from_path(&self.cwd.join(cwd));
        let params = start.into_params(id, cwd);
        refusal::check(&params)?;
        let start = terms::start_of(&self.environment, params);
        let refuse = |error| refusal::of_start(&error);
        let reservation = self.session.reserve(&start).map_err(refuse)?;
        // Whoever stops waiting here undoes the start.
        let process = self
            .engine
            .start(&self.session, reservation, start)
            .await
            .map_err(refuse)?;
        Ok(self.follow(&process, Seq::START, false))
    }

    fn attach(self: &Arc<Self>, id: &str, after: Seq) -> Result<Process, Error> {
        let found = self.session.find(id);
        let process = found.map_err(|error| RpcError::invalid_request(error.to_string()))?;
        Ok(self.follow(&process, after, true))
    }

    /// A handle on a process: the one there is, or a new one. Its events go into
    /// a record from just after a number on, unless they do already.
    fn follow(self: &Arc<Self>, process: &engine::Process, after: Seq, detached: bool) -> Process {
        let mut processes = self.processes();
        let id = process.id().to_owned();
        // The same name may have been another process's before.
        let known = match processes.entry(id) {
            Entry::Occupied(entry) if entry.get().process.key() == process.key() => {
                entry.into_mut()
            }
            entry => entry.insert_entry(self.record(process, after)).into_mut(),
        };
        if let Some(handle) = known.handle.upgrade() {
            return Process::new(handle);
        }
        let reins: Arc<dyn Reins> = Arc::new(LocalReins {
            place: Arc::clone(self),
            process: process.clone(),
        });
        let handle = Handle::new(
            Arc::clone(&known.record),
            reins,
            detached,
            self.runtime.clone(),
        );
        known.handle = Arc::downgrade(&handle);
        Process::new(handle)
    }

    fn record(self: &Arc<Self>, process: &engine::Process, after: Seq) -> Known {
        let summary = process.summary();
        // Nobody can have seen what has not happened, and who has seen the close
        // still wants to know how it ended.
        let last = summary.next_seq.previous();
        let after = after.min(if summary.state == engine::State::Closed {
            last.previous()
        } else {
            last
        });
        let mut events = Vec::new();
        process.events_after(after, usize::MAX, &mut events);
        let next = match events.first() {
            Some(event) => event.seq(),
            None => summary.next_seq,
        };
        let is_exit = |event: &engine::Event| matches!(event, engine::Event::Exited { .. });
        let earlier_exit = summary.exit.filter(|_| !events.iter().any(is_exit));
        let bell = Bell::default();
        let source = Box::new(bell.clone());
        let id = process.id().to_owned();
        let record = Arc::new(Record::new(id, self.limits, next.previous(), source));
        if earlier_exit.is_some() {
            record.begin_after(next.previous(), earlier_exit);
        }
        let pump = Pump {
            session: self.session.clone(),
            epoch: self.epoch,
            process: process.clone(),
            record: Arc::clone(&record),
            bell: bell.clone(),
            cursor: next.previous(),
        };
        let place = Arc::downgrade(self);
        let ended = process.clone();
        self.tasks.spawn(async move {
            pump.run().await;
            if let Some(place) = place.upgrade() {
                place.forget(&ended);
            }
        });
        Known {
            record,
            process: process.clone(),
            bell,
            handle: Weak::new(),
        }
    }

    /// Forgets a process that is over and that nobody has a handle on. As long as
    /// one isn't over its pump has to go on, or it would be held back.
    pub(super) fn forget(&self, process: &engine::Process) {
        let mut processes = self.processes();
        let done = processes.get(process.id()).is_some_and(|known| {
            known.process.key() == process.key()
                && known.record.is_over()
                && known.handle.strong_count() == 0
        });
        if done {
            processes.remove(process.id());
        }
    }

    fn processes(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.kill_all();
        let engine = self.engine.clone();
        let within = self.close_within;
        // Its tasks hold it; they end when it is told to.
        self.runtime.spawn(async move {
            engine.shutdown(within).await;
        });
    }
}

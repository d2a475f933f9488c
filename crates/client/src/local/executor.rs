//! The local executor.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outpost_engine as engine;
use outpost_engine::{
    Delivery, Engine, Epoch, EventListener as _, FileClient, Link, Peer, ProcessState, Seq,
    ServerEnvironment, Session, SessionOptions, Spawner, SpawnerOptions, StartError, Ttl,
    WorkerExit, netproxy::NetworkPolicies, sandbox::WorkerAccess,
};
use outpost_fetch::Fetcher;
use outpost_files::FileExecutor;
use outpost_journal as journal;
use outpost_protocol::{
    EnvironmentInfo, ErrorKind, HostInfo, ProcessEntry, RpcError, SandboxParams,
};
use parking_lot::Mutex;
use tokio::runtime::Handle as Runtime;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    LocalFileBackend, LocalOptions, http,
    process::{Forwarder, LocalBackend, Waker},
    watches::LocalWatches,
};
use crate::{
    Error, Executor, Files, HttpRequest, HttpResponse, Pending, Process, Start, process::ProcessLog,
};

/// The error text of all operations on a closed executor.
pub(super) const CLOSED: &str = "the executor was closed";

/// Runs processes as children of this program.
///
/// Clones share one executor. When the last clone and the last handle of a process are dropped,
/// processes that still run are killed. [`Executor::close`] terminates them gracefully.
#[derive(Clone)]
pub struct LocalExecutor {
    inner: Arc<Inner>,
}

/// The engine and the session of a local executor, shared by its clones.
pub(super) struct Inner {
    engine: Engine,
    pub(super) session: Session,
    epoch: Epoch,
    environment: ServerEnvironment,
    info: EnvironmentInfo,
    sandbox_level: engine::sandbox::Level,
    /// The base of relative paths.
    pub(super) cwd: PathBuf,
    limits: journal::Limits,
    close_within: Duration,
    /// Cancelled when the executor is closed.
    closed: CancellationToken,
    fetcher: Fetcher,
    pub(super) watches: Arc<LocalWatches>,
    processes: Mutex<HashMap<String, Known>>,
    /// Counts generated process ids.
    names: AtomicU64,
    /// The forwarders, which end with their processes.
    tasks: TaskTracker,
    runtime: Runtime,
}

/// A process that has a handle or is not closed.
struct Known {
    log: Arc<ProcessLog>,
    process: engine::Process,
    waker: Waker,
}

/// A session link without a connection: there is nothing to probe or replace.
struct NoLink;

impl Link for NoLink {
    fn probe(&self) {}
    fn replaced(&self) {}
    fn adopt(&self, _: &Session, _: Epoch, _: &engine::Process) {}
}

impl LocalExecutor {
    /// Creates an executor. Must be called inside a tokio runtime, which the executor must not
    /// outlive.
    pub fn new(options: LocalOptions) -> Result<Self, Error> {
        let setup_error = |error| Error::Setup(Arc::new(error));
        let spawner = Spawner::new(SpawnerOptions {
            trees: options.trees,
            subreaper: options.subreaper,
            child_open_files: options.child_open_files,
            moves_own_cgroup: options.moves_own_cgroup,
            ..SpawnerOptions::default()
        })
        .map_err(setup_error)?;
        let cwd = match options.cwd {
            Some(cwd) => cwd,
            None => std::env::current_dir().map_err(setup_error)?,
        };
        let info = engine::detect_environment(&cwd, spawner.tree_kind());
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
            options.sandbox_helper.map(|helper| {
                let helper = engine::sandbox::HelperCommand {
                    open_files: helper.open_files.or(options.child_open_files),
                    ..helper
                };
                engine::sandbox::Sandbox::new(helper, options.sandbox_level)
            }),
            options.limits,
        );
        let session = SessionOptions {
            principal: None,
            peer: Peer::Owner,
            ttl: Ttl::Unlimited,
            label: None,
            // The engine retains events until the forwarder has taken them.
            delivery: Delivery::Acked,
        };
        let opened = engine.open_session(session, Arc::new(NoLink));
        let (session, epoch) = opened.ok_or_else(|| Error::from(RpcError::overloaded()))?;
        Ok(LocalExecutor {
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
                fetcher: Fetcher::default(),
                watches: Arc::default(),
                processes: Mutex::default(),
                names: AtomicU64::new(0),
                tasks: TaskTracker::new(),
                runtime: Runtime::current(),
            }),
        })
    }
}

impl Executor for LocalExecutor {
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
            Ok(self.inner.session.list())
        })
    }

    fn environment(&self) -> Pending<'_, HostInfo> {
        Box::pin(async {
            self.inner.check_open()?;
            let mut info = self.inner.info.clone();
            info.limits = Some(self.inner.engine.limit_support().await);
            let found = self.inner.engine.sandbox_support().await;
            info.capabilities.sandboxed_file_streaming = found.is_ok();
            info.sandbox = Some(engine::sandbox_support(self.inner.sandbox_level, found));
            Ok(info.into())
        })
    }

    fn files(&self) -> Files {
        Files::new(Arc::new(LocalFileBackend::of(Arc::clone(&self.inner))))
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
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.closed.is_cancelled() {
            return Err(Error::disconnected(CLOSED));
        }
        Ok(())
    }

    /// Returns an executor of file operations that is sandboxed by the sandbox, if there is one.
    pub(super) async fn file_executor(
        &self,
        sandbox: Option<SandboxParams>,
        access: WorkerAccess,
        files: outpost_files::Files,
    ) -> Result<(FileExecutor, WorkerExit), RpcError> {
        let policy = sandbox.and_then(|sandbox| sandbox.into_policy(&self.cwd));
        let environment = &self.environment;
        let client = FileClient {
            peer: Peer::Owner,
            max_processes: None,
            key: 0,
        };
        let executor =
            self.engine
                .file_executor(client, (policy, None), environment, access, files);
        executor.await.map_err(start_error)
    }

    async fn close(&self) -> Result<(), Error> {
        self.closed.cancel();
        self.watches.close(&Error::disconnected(CLOSED));
        self.engine.end_session(&self.session).await;
        let within = self.close_within;
        let gone = self.engine.shutdown(within).await;
        if !gone {
            self.engine.kill_all();
        }
        // The end of the session detached the forwarders, so they were not woken for the last
        // events.
        for known in self.processes.lock().values() {
            if known.process.summary().state == ProcessState::Closed {
                known.waker.events_available();
            } else {
                known.log.fail(Error::disconnected(CLOSED));
            }
        }
        self.tasks.close();
        if gone {
            Ok(())
        } else {
            let attempt = "terminating all processes";
            Err(Error::TimedOut { attempt, within })
        }
    }

    async fn start(self: &Arc<Self>, start: Start) -> Result<Process, RpcError> {
        let params = start.into_params(&self.cwd, || {
            let number = self.names.fetch_add(1, Ordering::Relaxed) + 1;
            format!("local-{number}")
        });
        let policies = NetworkPolicies::default();
        let start = engine::Start::from_params(params, &self.environment, &policies)
            .map_err(|invalid| RpcError::invalid_params(invalid.to_string()))?;
        let reservation = self.session.reserve(&start).map_err(start_error)?;
        // Dropping this future cancels the start.
        let process = self
            .engine
            .start(&self.session, reservation, start)
            .await
            .map_err(start_error)?;
        Ok(self.follow(&process, Seq::START, false))
    }

    fn attach(self: &Arc<Self>, id: &str, after: Seq) -> Result<Process, Error> {
        let found = self.session.find(id);
        let process = found.map_err(|error| {
            RpcError::invalid_request(error.to_string()).with_kind(ErrorKind::UnknownProcess)
        })?;
        Ok(self.follow(&process, after, true))
    }

    /// Returns the handle of a process, or creates one. Starts to forward the events after `after`,
    /// unless they are forwarded already.
    fn follow(self: &Arc<Self>, process: &engine::Process, after: Seq, detached: bool) -> Process {
        let mut processes = self.processes.lock();
        let id = process.id().to_owned();
        // The id may have belonged to another process before.
        let known = match processes.entry(id) {
            Entry::Occupied(entry) if entry.get().process.key() == process.key() => {
                entry.into_mut()
            }
            entry => entry
                .insert_entry(self.forward_events(process, after))
                .into_mut(),
        };
        Process::of(&known.log, detached, self.runtime.clone(), || {
            Arc::new(LocalBackend {
                executor: Arc::clone(self),
                process: process.clone(),
            })
        })
    }

    fn forward_events(self: &Arc<Self>, process: &engine::Process, after: Seq) -> Known {
        let summary = process.summary();
        // Clamp the cursor to the last event. For a closed process, replay `closed`.
        let last = summary.next_seq.previous();
        let after = after.min(if summary.state == ProcessState::Closed {
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
        let waker = Waker::default();
        let space_available = {
            let waker = waker.clone();
            move || waker.events_available()
        };
        let id = process.id().to_owned();
        let log = ProcessLog::new(id, self.limits, next.previous(), space_available);
        let log = Arc::new(log);
        if earlier_exit.is_some() {
            log.restart_after(next.previous(), earlier_exit);
        }
        let forwarder = Forwarder {
            session: self.session.clone(),
            epoch: self.epoch,
            process: process.clone(),
            log: Arc::clone(&log),
            waker: waker.clone(),
            cursor: next.previous(),
        };
        let executor = Arc::downgrade(self);
        let ended = process.clone();
        self.tasks.spawn(async move {
            forwarder.run().await;
            if let Some(executor) = executor.upgrade() {
                executor.forget(&ended);
            }
        });
        Known {
            log,
            process: process.clone(),
            waker,
        }
    }

    /// Removes a process that is closed and has no handle. An open process keeps its forwarder,
    /// because it would block on a full journal otherwise.
    pub(super) fn forget(&self, process: &engine::Process) {
        let mut processes = self.processes.lock();
        let done = processes
            .get(process.id())
            .is_some_and(|known| known.process.key() == process.key() && known.log.is_unused());
        if done {
            processes.remove(process.id());
        }
    }
}

/// Converts a start error to the error that a server returns.
pub(super) fn start_error(error: StartError) -> RpcError {
    RpcError::of_kind(error.kind(), error.errno(), error.to_string())
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.kill_all();
        let engine = self.engine.clone();
        let within = self.close_within;
        // Its tasks keep the engine alive until it is shut down.
        self.runtime.spawn(async move {
            engine.shutdown(within).await;
        });
    }
}

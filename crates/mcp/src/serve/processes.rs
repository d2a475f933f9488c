//! The processes of a session, their state and their output.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use outpost_client::{Error, Event, Events, Executor, Process, Start, Terminate};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{OutputLog, OutputRetention, Stream, ToolError, ToolLimits};

/// All processes that were started and not dropped yet.
pub(super) struct ProcessRegistry {
    /// The prefix of ids. It differs between servers, so that an id from before a restart
    /// never refers to another process.
    id_prefix: String,
    inner: Mutex<Inner>,
    /// The tasks that collect output. They end with their processes or the registry.
    collectors: TaskTracker,
    closed: CancellationToken,
}

#[derive(Default)]
struct Inner {
    /// By number.
    processes: BTreeMap<u64, Arc<ToolProcess>>,
    /// Number of processes that are being started.
    starting: usize,
    last_number: u64,
}

/// A process with its id and output. Dropping it kills the process.
pub(super) struct ToolProcess {
    pub(super) id: String,
    number: u64,
    /// The requested command, shortened.
    pub(super) command: String,
    pub(super) tty: bool,
    pub(super) handle: Process,
    pub(super) monitor: Arc<ProcessMonitor>,
}

impl ProcessRegistry {
    pub(super) fn new(id_prefix: String) -> Self {
        ProcessRegistry {
            id_prefix,
            inner: Mutex::default(),
            collectors: TaskTracker::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Starts a process and collects its output.
    pub(super) async fn start(
        &self,
        executor: &dyn Executor,
        start: Start,
        command: String,
        tty: bool,
        limits: &ToolLimits,
    ) -> Result<Arc<ToolProcess>, ToolError> {
        let slot = self.reserve(limits)?;
        let handle = executor.start(start).await?;
        let monitor = Arc::new(ProcessMonitor::new(limits.retention));
        // The collector holds no `ToolProcess`, whose drop kills the process.
        let collector = Arc::clone(&monitor);
        let (events, closed) = (handle.events(), self.closed.clone());
        self.collectors.spawn(async move {
            tokio::select! {
                () = collector.collect(events) => {}
                () = closed.cancelled() => {}
            }
        });
        let mut inner = self.inner.lock();
        inner.last_number += 1;
        let number = inner.last_number;
        let process = Arc::new(ToolProcess {
            id: format!("{}-{number}", self.id_prefix),
            number,
            command,
            tty,
            handle,
            monitor,
        });
        inner.processes.insert(number, Arc::clone(&process));
        inner.drop_oldest_exited(limits);
        drop(inner);
        drop(slot);
        Ok(process)
    }

    fn reserve(&self, limits: &ToolLimits) -> Result<Slot<'_>, ToolError> {
        let mut inner = self.inner.lock();
        let running = inner
            .processes
            .values()
            .filter(|process| !process.is_closed());
        if running.count() + inner.starting >= limits.running {
            return Err(ToolError::TooManyProcesses {
                running: limits.running,
            });
        }
        inner.starting += 1;
        Ok(Slot(self))
    }

    /// Finds a process by its id.
    pub(super) fn find(&self, id: &str) -> Result<Arc<ToolProcess>, ToolError> {
        let number = id
            .strip_prefix(&self.id_prefix)
            .and_then(|rest| rest.strip_prefix('-')?.parse().ok());
        let inner = self.inner.lock();
        let process = number.and_then(|number: u64| inner.processes.get(&number));
        process
            .cloned()
            .ok_or_else(|| ToolError::UnknownProcess { id: id.to_owned() })
    }

    /// Finds a running process by its id.
    pub(super) fn find_running(&self, id: &str) -> Result<Arc<ToolProcess>, ToolError> {
        let process = self.find(id)?;
        let state = process.monitor.state();
        if !state.is_running() {
            return Err(ToolError::Exited {
                id: id.to_owned(),
                code: state.exit_code(),
            });
        }
        Ok(process)
    }

    /// Returns all processes, oldest first.
    pub(super) fn list(&self) -> Vec<Arc<ToolProcess>> {
        self.inner.lock().processes.values().cloned().collect()
    }

    /// Removes a process whose id was not given to the client.
    pub(super) fn remove(&self, process: &ToolProcess) {
        self.inner.lock().processes.remove(&process.number);
    }

    /// Drops all processes, which kills the running ones.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.inner.lock().processes.clear();
        self.collectors.close();
        self.collectors.wait().await;
    }
}

impl Inner {
    /// Drops the oldest exited processes until the rest is within the limits.
    fn drop_oldest_exited(&mut self, limits: &ToolLimits) {
        let exited = self
            .processes
            .values()
            .filter(|process| process.is_closed());
        let mut exited: Vec<_> = exited
            .map(|process| (process.number, process.monitor.lock().log.retained()))
            .collect();
        let mut bytes: usize = exited.iter().map(|(_, retained)| retained).sum();
        exited.reverse();
        while exited.len() > limits.exited || bytes > limits.exited_bytes {
            let Some((number, retained)) = exited.pop() else {
                return;
            };
            self.processes.remove(&number);
            bytes -= retained;
        }
    }
}

/// A reservation for a process that is being started.
struct Slot<'a>(&'a ProcessRegistry);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().starting -= 1;
    }
}

impl ToolProcess {
    /// Reports whether the process and everything that held its output has ended.
    fn is_closed(&self) -> bool {
        self.monitor.state().is_closed()
    }

    /// Terminates the process tree, leftover processes included, and waits for its end.
    /// Returns whether the process was running.
    pub(super) async fn terminate(
        &self,
        grace: Duration,
        limits: &ToolLimits,
    ) -> Result<bool, Error> {
        let was_running = self.monitor.state().is_running();
        let options = Terminate::new().grace(grace).tree();
        let result = match self.handle.terminate_with(options).await {
            // Older servers have no grace period.
            Err(Error::Unsupported { .. }) => self.handle.terminate().await,
            result => result,
        };
        match result {
            // A process that the executor has forgotten has ended.
            Ok(_) | Err(Error::UnknownProcess { .. }) => {}
            Err(error) => return Err(error),
        }
        let closed = self.monitor.wait_until(|record| record.state.is_closed());
        let _ = timeout(grace + limits.kill_wait, closed).await;
        Ok(was_running)
    }
}

/// The state of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Running,
    /// The process exited; leftover processes may still hold its output.
    Exited(i32),
    /// The process exited and its output is complete.
    Closed(i32),
    /// The executor was lost, for this reason.
    Lost(String),
}

impl ProcessState {
    pub(super) fn is_running(&self) -> bool {
        *self == ProcessState::Running
    }

    /// Reports whether no more events will arrive.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, ProcessState::Closed(_) | ProcessState::Lost(_))
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        match self {
            ProcessState::Exited(code) | ProcessState::Closed(code) => Some(*code),
            ProcessState::Running | ProcessState::Lost(_) => None,
        }
    }

    pub(super) fn lost_reason(self) -> Option<String> {
        match self {
            ProcessState::Lost(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Collects the events of a process, so that it never blocks until a call reads.
pub(super) struct ProcessMonitor {
    record: Mutex<ProcessRecord>,
    /// Notified of every change of the record.
    changed: watch::Sender<()>,
    started: Instant,
}

/// Output and state of a process.
pub(super) struct ProcessRecord {
    pub(super) log: OutputLog,
    pub(super) state: ProcessState,
    /// Set at the exit.
    duration: Option<Duration>,
}

impl ProcessMonitor {
    fn new(retention: OutputRetention) -> Self {
        ProcessMonitor {
            record: Mutex::new(ProcessRecord {
                log: OutputLog::new(retention),
                state: ProcessState::Running,
                duration: None,
            }),
            changed: watch::Sender::new(()),
            started: Instant::now(),
        }
    }

    /// Records all events to the last one.
    async fn collect(&self, mut events: Events) {
        while let Some(event) = events.next().await {
            self.record(event);
        }
        let mut record = self.lock();
        if !record.state.is_closed() {
            record.state = ProcessState::Lost("the event stream ended early".to_owned());
        }
        drop(record);
        self.changed.send_replace(());
    }

    fn record(&self, event: Event) {
        let mut record = self.lock();
        match event {
            Event::Output { stream, bytes, .. } => {
                let stream = match stream {
                    outpost_client::Stream::Stderr => Stream::Stderr,
                    outpost_client::Stream::Stdout | outpost_client::Stream::Pty => Stream::Stdout,
                };
                record.log.append(stream, &bytes);
            }
            Event::Exited { code, .. } => {
                record.state = ProcessState::Exited(code);
                record.duration = Some(self.started.elapsed());
            }
            Event::Closed { .. } => {
                let code = record.state.exit_code().unwrap_or(-1);
                record.state = ProcessState::Closed(code);
            }
            Event::Failed { error } => record.state = ProcessState::Lost(error.to_string()),
        }
        drop(record);
        self.changed.send_replace(());
    }

    /// Locks the record. Must not be held across an await.
    pub(super) fn lock(&self) -> MutexGuard<'_, ProcessRecord> {
        self.record.lock()
    }

    pub(super) fn state(&self) -> ProcessState {
        self.lock().state.clone()
    }

    /// Returns how long the process has run, until its exit.
    pub(super) fn duration(&self) -> Duration {
        let duration = self.lock().duration;
        duration.unwrap_or_else(|| self.started.elapsed())
    }

    /// Waits until the record satisfies `condition`. Cancel safe.
    pub(super) async fn wait_until(&self, condition: impl Fn(&ProcessRecord) -> bool) {
        let mut changed = self.changed.subscribe();
        loop {
            if condition(&self.lock()) {
                return;
            }
            // The wait can't fail: `self` holds the sender.
            let _ = changed.changed().await;
        }
    }

    /// Waits for the exit, and then at most `drain` for the end of the output, which
    /// leftover processes may hold open for ever.
    pub(super) async fn wait_exited(&self, drain: Duration) {
        self.wait_until(|record| !record.state.is_running()).await;
        let closed = self.wait_until(|record| record.state.is_closed());
        let _ = timeout(drain, closed).await;
    }
}

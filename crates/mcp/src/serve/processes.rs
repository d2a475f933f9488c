//! The processes of a session, their state and their output.

use std::{fmt, sync::Arc, time::Duration};

use outpost_client::{Error, Event, Events, Executor, Process, Start};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{OutputLog, Stream, ToolError, ToolLimits, text};
use crate::shutdown;

/// All processes that were started and not dropped yet.
pub(super) struct ProcessRegistry {
    /// The prefix of ids. It differs between servers, so that an id from before a restart
    /// never refers to another process.
    id_prefix: String,
    inner: Mutex<Inner>,
    /// Held by the collectors: limits the number of running processes.
    permits: Arc<Semaphore>,
    /// The tasks that collect output. They end with their processes or the registry.
    collectors: TaskTracker,
    closed: CancellationToken,
}

/// The processes of a registry, behind one lock.
#[derive(Default)]
struct Inner {
    /// Oldest first.
    processes: Vec<Arc<ToolProcess>>,
    last_number: u64,
}

/// A process with its id and output.
pub(super) struct ToolProcess {
    pub(super) id: String,
    /// The requested command, shortened.
    pub(super) command: String,
    pub(super) tty: bool,
    pub(super) handle: Process,
    /// Written by the collector.
    record: watch::Receiver<ProcessRecord>,
}

impl ProcessRegistry {
    pub(super) fn new(id_prefix: String, limits: &ToolLimits) -> Self {
        ProcessRegistry {
            id_prefix,
            inner: Mutex::default(),
            permits: Arc::new(Semaphore::new(limits.running_processes)),
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
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let running = limits.running_processes;
        let permit = permit.map_err(|_| ToolError::TooManyProcesses { running })?;
        let handle = executor.start(start).await?;
        let (sender, record) = watch::channel(ProcessRecord {
            log: OutputLog::new(limits.retention),
            state: ProcessState::Running,
            started: Instant::now(),
            duration: None,
        });
        let (events, closed) = (handle.events(), self.closed.clone());
        self.collectors.spawn(async move {
            tokio::select! {
                () = collect(events, sender, permit) => {}
                () = closed.cancelled() => {}
            }
        });
        let mut inner = self.inner.lock();
        inner.last_number += 1;
        let process = Arc::new(ToolProcess {
            id: format!("{}-{}", self.id_prefix, inner.last_number),
            command,
            tty,
            handle,
            record,
        });
        inner.processes.push(Arc::clone(&process));
        drop_oldest_exited(&mut inner.processes, limits);
        Ok(process)
    }

    /// Finds a process by its id.
    pub(super) fn find(&self, id: &str) -> Result<Arc<ToolProcess>, ToolError> {
        let inner = self.inner.lock();
        let process = inner.processes.iter().find(|process| process.id == id);
        process
            .cloned()
            .ok_or_else(|| ToolError::UnknownProcess { id: id.to_owned() })
    }

    /// Finds a running process by its id.
    pub(super) fn find_running(&self, id: &str) -> Result<Arc<ToolProcess>, ToolError> {
        let process = self.find(id)?;
        let state = process.record().state.clone();
        if state != ProcessState::Running {
            let (id, code) = (id.to_owned(), state.exit_code());
            return Err(ToolError::Exited { id, code });
        }
        Ok(process)
    }

    /// Returns all processes, oldest first.
    pub(super) fn list(&self) -> Vec<Arc<ToolProcess>> {
        self.inner.lock().processes.clone()
    }

    /// Removes a process whose id was not given to the client.
    pub(super) fn remove(&self, process: &ToolProcess) {
        let mut inner = self.inner.lock();
        inner.processes.retain(|known| known.id != process.id);
    }

    /// Drops all processes, which kills running processes.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.inner.lock().processes.clear();
        self.collectors.close();
        self.collectors.wait().await;
    }
}

/// Drops the oldest exited processes until the rest is within the limits.
fn drop_oldest_exited(processes: &mut Vec<Arc<ToolProcess>>, limits: &ToolLimits) {
    let (mut exited, mut bytes) = (0, 0);
    processes.reverse();
    processes.retain(|process| {
        let record = process.record();
        if !record.state.is_closed() {
            return true;
        }
        exited += 1;
        bytes += record.log.retained();
        exited <= limits.exited_processes && bytes <= limits.exited_bytes
    });
    processes.reverse();
}

/// Records the events of a process, so that it never blocks until a call reads.
async fn collect(
    mut events: Events,
    record: watch::Sender<ProcessRecord>,
    permit: OwnedSemaphorePermit,
) {
    let mut permit = Some(permit);
    while let Some(event) = events.next().await {
        // Released first: a call that sees the end may start another process.
        if matches!(event, Event::Closed { .. } | Event::Failed { .. }) {
            permit = None;
        }
        record.send_modify(|record| record.add(event));
    }
    drop(permit);
    record.send_modify(|record| {
        if !record.state.is_closed() {
            record.state = ProcessState::Lost("the event stream ended early".to_owned());
        }
    });
}

impl ToolProcess {
    /// Returns the output and state. Must not be held across an await.
    pub(super) fn record(&self) -> watch::Ref<'_, ProcessRecord> {
        self.record.borrow()
    }

    /// Waits until the record satisfies `condition`, or the registry is closed. Cancel safe.
    pub(super) async fn wait_until(&self, condition: impl Fn(&ProcessRecord) -> bool) {
        let _ = self.record.clone().wait_for(condition).await;
    }

    /// Waits for the exit, and then at most `drain` for the end of the output, which
    /// leftover processes may hold open for ever.
    pub(super) async fn wait_exited(&self, drain: Duration) {
        self.wait_until(|record| !record.is_running()).await;
        let closed = self.wait_until(|record| record.state.is_closed());
        let _ = timeout(drain, closed).await;
    }

    /// Terminates the process tree, leftover processes included, and waits for its end.
    /// Returns whether the process was running.
    pub(super) async fn terminate(
        &self,
        grace: Duration,
        limits: &ToolLimits,
    ) -> Result<bool, Error> {
        let was_running = self.record().is_running();
        shutdown::terminate(&self.handle, Some(grace)).await?;
        let closed = self.wait_until(|record| record.state.is_closed());
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

    pub(super) fn lost_reason(&self) -> Option<String> {
        match self {
            ProcessState::Lost(reason) => Some(reason.clone()),
            _ => None,
        }
    }
}

/// Output and state of a process.
pub(super) struct ProcessRecord {
    pub(super) log: OutputLog,
    pub(super) state: ProcessState,
    started: Instant,
    /// Set at the exit.
    duration: Option<Duration>,
}

impl ProcessRecord {
    pub(super) fn is_running(&self) -> bool {
        self.state == ProcessState::Running
    }

    /// Returns how long the process has run, until its exit.
    pub(super) fn duration(&self) -> Duration {
        self.duration.unwrap_or_else(|| self.started.elapsed())
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Output { stream, bytes, .. } => {
                let stream = match stream {
                    outpost_client::Stream::Stderr => Stream::Stderr,
                    outpost_client::Stream::Stdout | outpost_client::Stream::Pty => Stream::Stdout,
                };
                self.log.append(stream, &bytes);
            }
            Event::Exited { code, .. } => {
                self.state = ProcessState::Exited(code);
                self.duration = Some(self.started.elapsed());
            }
            Event::Closed { .. } => {
                self.state = ProcessState::Closed(self.state.exit_code().unwrap_or(-1));
            }
            Event::Failed { error } => self.state = ProcessState::Lost(error.to_string()),
        }
    }
}

impl fmt::Display for ProcessRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::state(&self.state, self.duration()))
    }
}

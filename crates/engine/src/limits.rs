//! Limits and timeouts of the engine.

use std::time::Duration;

/// Limits and timeouts. The defaults are used in production; tests pass others.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Retained output per process; also the maximum that a client may request.
    pub retain_bytes: usize,
    /// Retained chunks per process.
    pub retain_chunks: usize,
    /// The flow-control window: unread output per process before reading pauses.
    pub window_bytes: usize,
    /// The memory of the output that all processes keep, for their owners or as history. The
    /// retention and the window of each process are at most the free part of this memory.
    pub kept_output_bytes: usize,
    /// How long a closed process stays readable.
    pub closed_retention: Duration,
    /// How many closed processes stay readable, over all sessions.
    pub closed_processes: usize,
    /// How much output closed processes keep, over all sessions. Beyond it the largest outputs are halved,
    /// down to a tail of `closed_bytes` divided by `closed_processes`.
    pub closed_bytes: u64,
    /// How many processes may be running, over all sessions.
    pub max_processes: usize,
    /// How many further processes of the server's owner may be running, but at most an eighth of
    /// `max_processes`.
    pub owner_processes: usize,
    /// How many sessions there may be.
    pub max_sessions: usize,
    /// How many further sessions the server's owner may have.
    pub owner_sessions: usize,
    /// The longest lease of a session without processes.
    pub empty_session_ttl: Duration,
    /// How long nothing is evicted after a resume, so that the client can read
    /// the output that it missed.
    pub catch_up: Duration,
    /// How many bytes of input are queued per process.
    pub stdin_bytes: usize,
    /// How many write ids a process remembers.
    pub write_ids: usize,
    /// The grace period of processes that are terminated with their session or
    /// with the server.
    pub termination_grace: Duration,
    /// How many bytes of output have to be freed before the heap is trimmed.
    pub trim_after_bytes: u64,
    /// The timeout from the start of a sandboxed process until its program runs.
    pub sandbox_start_timeout: Duration,
    /// The timeout of a sandboxed file operation.
    pub file_operation_timeout: Duration,
    /// How long to wait for late output of a sandboxed process after its exit. The
    /// output shows whether the sandbox denied an operation.
    pub late_output_timeout: Duration,
    /// How many shell snapshots a session keeps.
    pub shell_snapshots: usize,
    /// The timeout of capturing the state of a login shell.
    pub shell_snapshot_timeout: Duration,
    /// The largest state of a login shell that is captured.
    pub shell_snapshot_bytes: usize,
    /// Whether a detached session ends before its lease, once its last process is
    /// forgotten and no process is left running.
    pub end_forgotten_sessions: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let log = outpost_journal::Limits::default();
        Limits {
            retain_bytes: log.retain_bytes,
            retain_chunks: log.retain_chunks,
            window_bytes: log.window_bytes,
            kept_output_bytes: 48 * 1024 * 1024,
            closed_retention: Duration::from_secs(30),
            closed_processes: 4096,
            closed_bytes: 24 * 1024 * 1024,
            max_processes: 4096,
            owner_processes: 8,
            max_sessions: 4096,
            owner_sessions: 8,
            empty_session_ttl: Duration::from_secs(60),
            catch_up: Duration::from_secs(5),
            stdin_bytes: 1024 * 1024,
            write_ids: 4096,
            termination_grace: Duration::from_secs(2),
            trim_after_bytes: 16 * 1024 * 1024,
            sandbox_start_timeout: Duration::from_secs(20),
            file_operation_timeout: Duration::from_secs(600),
            late_output_timeout: Duration::from_millis(20),
            shell_snapshots: 16,
            shell_snapshot_timeout: Duration::from_secs(10),
            shell_snapshot_bytes: 4 * 1024 * 1024,
            end_forgotten_sessions: false,
        }
    }
}

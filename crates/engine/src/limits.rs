//! Every bound and every time of the engine.

use std::time::Duration;

/// What the engine allows. The defaults are what ships; tests pass others.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Retained output per process, and the most that one may ask for.
    pub retain_bytes: usize,
    /// Retained chunks per process.
    pub retain_chunks: usize,
    /// How far a child may run ahead of its owner.
    pub window_bytes: usize,
    /// How long a closed process stays readable.
    pub closed_retention: Duration,
    /// How many closed processes stay readable, over all sessions.
    pub closed_processes: usize,
    /// How much output closed processes keep, over all sessions.
    pub closed_bytes: u64,
    /// How many processes may be running, over all sessions.
    pub max_processes: usize,
    /// How many sessions there may be.
    pub max_sessions: usize,
    /// How long nothing is evicted after a resume, so that the client can read
    /// what it missed.
    pub catch_up: Duration,
    /// How many bytes may wait for a child to read its input.
    pub stdin_bytes: usize,
    /// How many write ids a process remembers.
    pub write_ids: usize,
    /// How long what is ended with its session or the server has, between
    /// being asked to and being made to.
    pub end_grace: Duration,
    /// How much output processes have to give up before it is worth mention.
    pub ebb_bytes: u64,
    /// How long it may take from the start of a confined process until its
    /// program runs.
    pub confine_within: Duration,
    /// How long a confined file operation may take.
    pub clerk_answers_within: Duration,
    /// How long after its exit what a confined process has written is waited
    /// for, to see whether the sandbox was in its way.
    pub late_within: Duration,
    /// How many bytes are taken from a child in one go.
    pub read_bytes: usize,
    /// Whether a session that nobody is attached to ends once its last process
    /// is forgotten and nothing of it is left running, whatever its lease says.
    pub end_forgotten_sessions: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let log = outpost_journal::Limits::default();
        Limits {
            retain_bytes: log.retain_bytes,
            retain_chunks: log.retain_chunks,
            window_bytes: log.window_bytes,
            closed_retention: Duration::from_secs(30),
            closed_processes: 4096,
            closed_bytes: 256 * 1024 * 1024,
            max_processes: 4096,
            max_sessions: 4096,
            catch_up: Duration::from_secs(5),
            stdin_bytes: 1024 * 1024,
            write_ids: 4096,
            end_grace: Duration::from_secs(2),
            ebb_bytes: 16 * 1024 * 1024,
            confine_within: Duration::from_secs(20),
            clerk_answers_within: Duration::from_secs(600),
            late_within: Duration::from_millis(20),
            read_bytes: 64 * 1024,
            end_forgotten_sessions: false,
        }
    }
}

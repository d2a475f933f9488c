//! Sessions and processes, independent of transport and wire format.
//!
//! # Theory of operation
//!
//! An [`Engine`] has [`Session`]s, a session has [`Process`]es. Each process has
//! one actor, a task that exclusively reads its output, writes its queued input,
//! waits for its exit and terminates it. All other code holds a [`Process`]
//! handle and accesses shared state under short locks. The actor appends events
//! to the process's journal and notifies the feed of the owning connection
//! ([`EventListener`]). A connection reads the journal through its own cursor and
//! reports its progress, which opens the flow-control window of the actor.
//!
//! Invariants:
//! - Only the actor appends to the journal, so sequence numbers are the order of
//!   events.
//! - A slot in a session is reserved before the child exists and then either gets
//!   the process or is released. If the session ended in the meantime, the child is
//!   killed.
//! - No lock is held across an await, and the output of two processes never
//!   shares a lock.
//!
//! - `engine`: sessions, limits, sandboxed starts, retention of closed processes
//! - `session`: slots and lease of one session (`slots`, `lease`)
//! - `process`: the handle on one process; `stdin`, its input; `actor`, its task
//! - `kept_output`: the log of each process, and the memory of the output of all processes
//! - `network`: the proxy of a process; `observer`: sees its exit and the decisions of its proxy
//! - `peer`: the identity of a client, by which limits are counted
//! - `peer_limiter`: permits per peer, for processes, sessions and connections
//! - `shell_snapshot`: the states of login shells, for commands that do not run the profile again
//! - `termination`, `closed_processes`, `suspension_meter`: pure state machines; `exit_cause`: what ended a process

mod actor;
mod clock;
mod closed_processes;
mod engine;
mod environment;
mod environment_info;
mod error;
mod exit_cause;
mod freed_bytes;
mod idle;
mod kept_output;
mod limits;
mod network;
mod observer;
mod peer;
mod peer_limiter;
mod process;
mod session;
mod shell_snapshot;
mod start;
mod stdin;
mod suspension_meter;
mod termination;

pub use engine::{Engine, FileClient, ResumeOptions, WorkerExit};
pub use environment::ServerEnvironment;
pub use environment_info::{detect_environment, sandbox_support};
pub use error::{NotPermitted, NotRecorded, ReadError, ResizeError, StartError};
pub use idle::{ActivityGuard, ActivityTracker};
pub use limits::Limits;
pub use network::{InvalidNetwork, NetworkRequest};
pub use observer::ProcessObserver;
pub use outpost_journal::{Chunk, Event, Exit, OutputEnd, Page};
/// The proxy of a process, and its policy.
pub use outpost_netproxy as netproxy;
pub use outpost_process::{
    ReaperCommand, SpawnError, SpawnErrorKind, Spawner, SpawnerOptions, Stdio, TreeChoice,
    configure_heap, is_sigint_ignored, is_sigtstp_ignored, memory_limit, restore_sigchld,
    restore_sigint, stop_by_sigtstp, subreaper, trim_heap,
};
/// Sandbox policies and their enforcement.
pub use outpost_sandbox as sandbox;
pub use outpost_types::{
    Delivery, EnvPolicy, Inherit, LimitName, LimitSupport, ProcessEntry, ProcessState,
    ResourceLimits, Seq, Signal, Stream, TerminalSize, TreeKind, WriteStatus,
};
pub use peer::{Peer, PrincipalKey};
pub use peer_limiter::{PeerLimiter, PeerPermit};
pub use process::{EventListener, Process, Summary};
pub use session::{
    Epoch, Link, Reservation, ResumeError, Session, SessionId, SessionOptions, Terminated, Ttl,
};
pub use shell_snapshot::{InvalidSnapshot, SnapshotRequest};
pub use start::{InvalidStart, ProcessInfo, Start};

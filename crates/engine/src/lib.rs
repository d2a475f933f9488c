//! The registry of processes and sessions: what a process is and does, with no
//! transport and no JSON in sight.
//!
//! # Theory of operation
//!
//! An [`Engine`] has [`Session`]s, a session has [`Process`]es. Each child has
//! one actor, a task that alone reads its pipes, feeds its input, waits for its
//! exit and ends it; everybody else holds a [`Process`] handle and touches
//! shared state under short locks. The actor appends to the process's journal
//! and announces news; a connection reads the journal through its own cursor
//! and says how far it has come, which is what lets the actor go on.
//!
//! Invariants:
//! - Only the actor appends to the journal, so its numbers are the order of
//!   events.
//! - A slot in a session is reserved before the child exists and is either
//!   filled or freed; a session that ended meanwhile gets its child killed.
//! - No lock is held across an await, and none is shared by two processes'
//!   bytes.

mod actor;
mod attendance;
mod clock;
mod ebb;
mod engine;
mod environment;
mod error;
mod ladder;
mod limits;
mod process;
mod session;
mod shelf;
mod start;
mod stdin;
mod write_ids;

pub use attendance::{Attendance, Presence};
pub use engine::{Departure, Engine, Purpose, Resume};
pub use environment::{EnvPolicy, Inherit, ServerEnvironment};
pub use error::{ReadError, ResizeError, StartError};
pub use limits::Limits;
pub use outpost_journal::{Chunk, End, Event, Exit, Page, Seq, Stream};
pub use outpost_process::{
    KeeperCommand, Signal, Size, SpawnError, SpawnErrorKind, Spawner, SpawnerOptions, TreeChoice,
    TreeKind, give_back_memory, heed_children, heed_interrupt, ignores_interrupts, keeper,
};
/// What a process may be confined to.
pub use outpost_sandbox as sandbox;
pub use process::{Process, State, Summary, Watcher};
pub use session::{
    Delivery, Epoch, Link, Reservation, ResumeRefusal, Session, SessionId, SessionOptions,
    Terminated, Ttl,
};
pub use start::{About, Start, Terminal};
pub use stdin::WriteStatus;

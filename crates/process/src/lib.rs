//! Spawns one child process and provides its standard streams, terminal size, signals, process tree
//! and exit status.
//!
//! This crate knows no protocol, keeps no history and makes no policy decisions. It starts a program
//! on pipes or on a pseudoterminal (PTY) and returns four handles with one owner each: the
//! [`Input`], the [`Output`]s, the [`ExitWatch`] and a [`Control`], which can be cloned.
//!
//! # Theory of operation
//!
//! **Spawning.** [`Spawner::spawn`] validates the [`Command`] and prepares all arguments of `execve`
//! in the caller's task (`prepared`), then queues the job for one of a few permanent threads
//! (`spawn_queue`, `launch`). The thread opens the descriptors (`child_stdio`), creates the process tree
//! (`tree`) and clones in the style of `vfork` (`sys::clone`): the child shares the server's memory,
//! and the thread is suspended until the child has called `execve` or exited. The cost of a start
//! therefore does not depend on the size of the server, and a failure in the child is reported as a
//! stage and an `errno` in a struct on the thread's stack (`sys::child_setup`). The threads are
//! permanent because some properties of a child depend on the *thread* that cloned it. There are few
//! of them because each start blocks one for the duration of `execve`. A start that hangs in a file
//! system is given up after a timeout, and its thread replaced (`start_progress`).
//!
//! **Spawning through a subreaper.** If process trees are supervised by subreaper processes
//! (`subreaper`), the thread sends the prepared program to a subreaper that is already running and
//! waits for the reply: a pid, or a stage and an `errno`. The subreaper clones with the same code.
//! The child sees the same environment either way, except that its parent and its session are the
//! subreaper's: without a PTY of its own it has no controlling terminal, even if the server has one.
//!
//! **Exhausted memory.** A child's out-of-memory score is above the server's (`oom_score`), so that the kernel
//! kills programs first.
//!
//! **Limits.** Those of one process are set by the child itself before `execve` (`rlimits`). Those of
//! the whole tree are set in its cgroup before the clone, in a directory with the controllers
//! (`tree::controllers`).
//!
//! **Running.** The parent's ends of pipes and PTYs are non-blocking and registered with the tokio
//! runtime of the task that awaits the spawn. [`Output::read`] holds no buffer between calls, so a
//! silent process costs no memory here. Nothing is read ahead: a reader that stops reading applies
//! backpressure to the child.
//!
//! **Exit.** [`ExitWatch::wait`] learns the status from a pidfd or from the child's subreaper, and
//! leaves the child a zombie (`exit`). While it is a zombie its pid cannot be reused, so
//! [`Control::signal`] may use the process group id. [`ExitWatch::reap`] releases the pid under the
//! same lock (`control`). Leftover processes belong to the `tree`: a cgroup and a subreaper track
//! them for as long as they live, a process group only as far as `/proc` shows them.
//!
//! **Cleanup.** Every start releases what it reserved in reverse order. A spawn whose future is
//! dropped kills the child it started (`child`). An [`ExitWatch`] that is dropped early
//! leaves its child running, and a spawner thread reaps the child later. Dropping handles kills
//! nothing. When the whole program ends, however it ends, subreapers kill all processes they
//! supervise, because their sockets close.
//!
//! **Process-wide state** is never changed: no SIGCHLD handler, no subreaper attribute, no signal
//! dispositions. Subreapers are separate processes, and functions such as [`restore_sigchld`] are for
//! the program itself to call. `SIGPIPE` must be ignored, as Rust's runtime does at startup, so that
//! [`Input::try_write`] fails instead of killing the server.

mod child;
mod child_stdio;
mod command;
mod control;
mod descriptor_slots;
mod error;
mod exit;
mod input;
mod launch;
mod memory_limit;
mod oom_score;
mod output;
mod prepared;
mod program;
mod rlimits;
mod spawn_queue;
mod spawner;
mod start_progress;
pub mod subreaper;
mod sys;
mod terminal;
mod tree;

pub use child::Child;
pub use command::{Command, FIRST_PASSED_FD, MAX_PASSED_FDS, Stdio, Wrapper, WrapperStdio};
pub use control::{Control, Disposition};
pub use error::{SpawnError, SpawnErrorKind};
pub use exit::{Exit, ExitWatch};
pub use input::Input;
pub use memory_limit::memory_limit;
pub use outpost_types::{ResourceLimits, Signal, Stream, TerminalSize, TreeKind};
pub use output::{Output, ReadOutcome};
pub use prepared::ExecStrings;
pub use rlimits::Rlimits;
pub use spawner::{Spawner, SpawnerOptions};
pub use subreaper::ReaperCommand;
pub use sys::memory::{configure_heap, trim_heap};
pub use sys::register::ReadableFd;
pub use sys::signal_reset::{
    is_sigint_ignored, is_sigtstp_ignored, restore_sigchld, restore_sigint, stop_by_sigtstp,
};
pub use terminal::NoTerminal;
pub use tree::{TreeChoice, unescape_mountinfo};

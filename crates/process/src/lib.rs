//! One child of the operating system: its bytes, its size, its signals, its tree, its end.
//!
//! This room knows no protocol, keeps no history and decides nothing. It starts a program on pipes
//! or on a terminal and hands out four things, each for one owner: the [`Input`], the [`Output`]s,
//! the [`ExitWatch`] and a [`Control`] that may be cloned.
//!
//! # Theory of operation
//!
//! **Starting.** [`Spawner::spawn`] checks the [`Command`] and lays out everything `execve` needs
//! (`prepared`) in the caller's task, then queues it for one of a few permanent threads
//! (`queue`, `worker`). The thread opens the descriptors (`descriptors`), makes the tree's
//! place (`tree`) and clones the way `vfork` does (`sys::clone`): the child borrows the
//! server's memory, and the thread stands still until it has executed its program or given up. So
//! a start costs the same in a server of 10 MiB and of 10 GiB, and the child's failure comes back
//! as a stage and an `errno` in a struct on the thread's own stack (`sys::birth`). The threads
//! are permanent since some things a child inherits or is tied to belong to the *thread* that made
//! it; they are few since each start blocks one of them for as long as `execve` takes.
//!
//! **Starting through a keeper.** Where trees are kept by processes of our own (`keeper`), the thread
//! has one of them ready before there is a program for it, sends it what it would have cloned with,
//! and waits for the answer, which is a number or the same stage and `errno`: the keeper clones with
//! the same code. What a child finds is the same as well, except that it is its keeper's child and
//! session: it has no terminal if it was given none, even where the server has one.
//!
//! **Running.** Our ends of the pipes and of the terminal are non-blocking and registered with the
//! runtime of whoever awaited the spawn. [`Output::read`] holds no buffer between two calls, so a
//! process that is silent costs nothing here. Nothing is read that nobody asked for: a reader that
//! stops is how a child is held back.
//!
//! **Ending.** [`ExitWatch::wait`] learns the status from a pidfd, or from the child's keeper, and
//! the child stays a zombie (`watch`). As long as it is one, its number names nobody else, and
//! [`Control::signal`] may use the number of its group; [`ExitWatch::reap`] takes the number away
//! under the same lock (`leader`). What the child left running is the business of its `tree`: a
//! cgroup and a keeper know it for as long as it lives, a process group only as far as the tables of
//! `/proc` still tell.
//!
//! **Giving up.** Every start reserves in one order and frees in the other; a spawn whose future
//! is dropped kills what it had started (`newborn`). An [`ExitWatch`] that is dropped early leaves
//! its child running, and a spawner thread reaps it later. Handles that go kill nothing; but a
//! program that goes takes everything along that keepers look after, however it went: the end of
//! their sockets is the order. No setting of the whole process is touched: no SIGCHLD handler, no
//! subreaper, no signal disposition; keepers have their own, and [`heed_children`] is for a program to
//! call. `SIGPIPE` must be ignored, as
//! Rust's own runtime sets it up, for [`Input::try_write`] to fail instead of killing the server.

mod bell;
mod child;
mod command;
mod control;
mod descriptors;
mod disposition;
mod error;
mod exit;
mod input;
pub mod keeper;
mod laid_out;
mod launch;
mod leader;
mod lookup;
mod means;
mod newborn;
mod output;
mod prepared;
mod queue;
mod signal;
mod slots;
mod spawner;
mod strings;
mod sys;
mod terminal;
mod tree;
mod watch;
mod watched;
mod worker;

pub use child::Child;
pub use command::{Carrier, Command, MOST_CARRIED, Own, Size, Stdio};
pub use control::Control;
pub use disposition::Disposition;
pub use error::{SpawnError, SpawnErrorKind};
pub use exit::{Exit, ExitWatch};
pub use input::Input;
pub use keeper::KeeperCommand;
pub use laid_out::LaidOut;
pub use output::{Output, ReadOutcome, Stream};
pub use signal::Signal;
pub use spawner::{Spawner, SpawnerOptions};
pub use sys::dispositions::{heed_children, heed_interrupt, ignores_interrupts};
pub use sys::memory::give_back_memory;
pub use terminal::NoTerminal;
pub use tree::{TreeChoice, TreeKind};
pub use watched::Watched;

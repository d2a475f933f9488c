//! The commands for people.

mod completions;
mod detached;
mod elsewhere;
mod home;
mod kill;
mod logs;
mod ps;
mod stop;

use outpost_testkit::Home;

/// A user who has no server yet.
fn home() -> Home {
    Home::of(env!("CARGO_BIN_EXE_outpost"))
}

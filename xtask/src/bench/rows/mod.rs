//! The rows of the table, one file each.

mod confined;
mod copy;
mod embedded;
mod flood;
mod growth;
mod idle;
mod long_poll;
mod many;
mod neighbour;
mod one_shot;
mod pty;
mod reconnect;
mod size;
mod typing;

use anyhow::Result;

use super::args::RowName;
use super::measurement::Measurement;
use super::run::Bench;

/// The function that measures a row.
type Run = fn(&Bench) -> Result<Vec<Measurement>>;

/// A row with its name.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) run: Run,
}

pub(super) fn of(name: RowName) -> Row {
    let (name, run): (_, Run) = match name {
        RowName::OneShot => ("one-shot", one_shot::run),
        RowName::Confined => ("confined one-shot", confined::run),
        RowName::Many => ("many at once", many::run),
        RowName::Flood => ("flood", flood::run),
        RowName::Embedded => ("embedded", embedded::run),
        RowName::Pty => ("PTY flood", pty::run),
        RowName::Typing => ("typing", typing::run),
        RowName::Neighbour => ("busy neighbour", neighbour::run),
        RowName::LongPoll => ("waiting", long_poll::run),
        RowName::Reconnect => ("coming back", reconnect::run),
        RowName::Idle => ("idle", idle::run),
        RowName::Copy => ("copy", copy::run),
        RowName::Size => ("size", size::run),
        RowName::Growth => ("growth", growth::run),
    };
    Row { name, run }
}

//! The rows of the table, one file each: what the sides do in a round, and what they must reach.

mod coming_back;
mod confined;
mod copy;
mod embedded;
mod flood;
mod growth;
mod many;
mod neighbour;
mod one_shot;
mod pty;
mod size;
mod standing_by;
mod typing;
mod waiting;

use anyhow::Result;

use super::args::RowName;
use super::line::Line;
use super::run::Bench;

/// Measures a row.
type Run = fn(&Bench) -> Result<Vec<Line>>;

/// A row: its name for people, and how it is measured.
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
        RowName::Waiting => ("waiting", waiting::run),
        RowName::ComingBack => ("coming back", coming_back::run),
        RowName::StandingBy => ("standing by", standing_by::run),
        RowName::Copy => ("copy", copy::run),
        RowName::Size => ("size", size::run),
        RowName::Growth => ("growth", growth::run),
    };
    Row { name, run }
}

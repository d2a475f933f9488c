//! The rows of the table.
//!
//! - [`commands`]: short commands
//! - [`floods`]: large amounts of output
//! - [`latency`]: keystrokes, requests and reconnects
//! - [`idle`]: idle servers, processes and connections
//! - [`files`]: copied files, and the size of the binary

mod commands;
mod files;
mod floods;
mod idle;
mod latency;

use anyhow::Result;

use super::args::RowName;
use super::measurement::Measurement;
use super::run::Bench;

/// Measures a row.
pub(super) fn measure(row: RowName, bench: &Bench) -> Result<Vec<Measurement>> {
    match row {
        RowName::OneShot => commands::one_shot(bench),
        RowName::Confined => commands::confined(bench),
        RowName::Many => commands::many(bench),
        RowName::Flood => floods::flood(bench),
        RowName::Embedded => floods::embedded(bench),
        RowName::Pty => floods::pty(bench),
        RowName::Typing => latency::typing(bench),
        RowName::Neighbour => latency::neighbour(bench),
        RowName::LongPoll => latency::long_poll(bench),
        RowName::Reconnect => latency::reconnect(bench),
        RowName::Idle => idle::idle(bench),
        RowName::Copy => files::copy(bench),
        RowName::Size => files::size(bench),
        RowName::Growth => idle::growth(bench),
    }
}

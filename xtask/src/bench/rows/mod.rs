//! The rows of the table.
//!
//! - [`commands`]: short commands
//! - [`login_shells`]: commands of login shells
//! - [`floods`]: large amounts of output
//! - [`latency`]: keystrokes, requests and reconnects
//! - [`idle`]: idle servers, processes and connections
//! - [`hostile`]: memory under attack
//! - [`files`]: copied files, and the size of the binary
//! - [`auth`]: the cost of TLS and of authentication

mod auth;
mod commands;
mod files;
mod floods;
mod hostile;
mod idle;
mod latency;
mod login_shells;

use anyhow::Result;

use super::args::RowName;
use super::measurement::Measurement;
use super::run::Bench;

/// Measures a row.
pub(super) fn measure(row: RowName, bench: &Bench) -> Result<Vec<Measurement>> {
    match row {
        RowName::OneShot => commands::one_shot(bench),
        RowName::Sandboxed => commands::sandboxed(bench),
        RowName::Login => login_shells::login(bench),
        RowName::Many => commands::many(bench),
        RowName::Flood => floods::flood(bench),
        RowName::Embedded => floods::embedded(bench),
        RowName::Pty => floods::pty(bench),
        RowName::Typing => latency::typing(bench),
        RowName::Neighbour => latency::neighbour(bench),
        RowName::LongPoll => latency::long_poll(bench),
        RowName::Reconnect => latency::reconnect(bench),
        RowName::Idle => idle::idle(bench),
        RowName::Hostile => hostile::hostile(bench),
        RowName::Copy => files::copy(bench),
        RowName::Tls => auth::tls(bench),
        RowName::Authentication => auth::authentication(bench),
        RowName::Size => files::size(bench),
        RowName::Growth => idle::growth(bench),
    }
}

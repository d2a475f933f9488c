//! The process list of a session.

use std::time::UNIX_EPOCH;

use outpost_types::{PathUri, ProcessEntry, ProcessState};

use super::Session;
use crate::{About, Process};

impl Session {
    /// Lists the processes, including those that are starting, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ProcessEntry> {
        let starting = self.starting();
        let live = self.processes();
        let starting = starting
            .iter()
            .map(|about| (about.order, starting_entry(about)));
        let live = live
            .iter()
            .map(|process| (process.about().order, live_entry(process)));
        let mut entries: Vec<_> = starting.chain(live).collect();
        entries.sort_by_key(|(order, _)| *order);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

fn starting_entry(about: &About) -> ProcessEntry {
    let since_epoch = about.started_at.duration_since(UNIX_EPOCH);
    ProcessEntry {
        process_id: about.id.clone(),
        pid: None,
        argv: about.argv.clone(),
        cwd: PathUri::from_path(&about.cwd),
        tty: about.tty,
        started_at_ms: since_epoch.map_or(0, |since| since.as_millis() as u64),
        state: ProcessState::Starting,
        exit_code: None,
        next_seq: 1,
        bytes_out: 0,
    }
}

fn live_entry(process: &Process) -> ProcessEntry {
    let summary = process.summary();
    ProcessEntry {
        pid: Some(process.pid()),
        state: summary.state,
        exit_code: summary.exit.map(|exit| exit.code),
        next_seq: summary.next_seq.0,
        bytes_out: summary.bytes_out,
        ..starting_entry(process.about())
    }
}

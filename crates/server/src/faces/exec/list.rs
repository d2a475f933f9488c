//! `process/list`.

use std::time::UNIX_EPOCH;

use outpost_engine::{About, Process, Session};
use outpost_protocol::{ListResult, PathUri, ProcessEntry, ProcessState};

use crate::convert;

/// Everything of a session, oldest first.
pub(crate) fn list(session: &Session) -> ListResult {
    let starting = session.starting();
    let live = session.processes();
    let starting = starting.iter().map(|about| (about.order, entry(about)));
    let live = live
        .iter()
        .map(|process| (process.about().order, live_entry(process)));
    let mut processes: Vec<_> = starting.chain(live).collect();
    processes.sort_by_key(|(order, _)| *order);
    ListResult {
        processes: processes.into_iter().map(|(_, entry)| entry).collect(),
    }
}

/// A process that doesn't exist yet.
fn entry(about: &About) -> ProcessEntry {
    let since = about.started_at.duration_since(UNIX_EPOCH);
    ProcessEntry {
        process_id: about.id.clone(),
        pid: None,
        argv: about.argv.clone(),
        cwd: PathUri::from_path(&about.cwd),
        tty: about.tty,
        started_at_ms: since.map_or(0, |since| since.as_millis() as u64),
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
        state: convert::process_state(summary.state),
        exit_code: summary.exit.map(|exit| exit.code),
        next_seq: summary.next_seq.0,
        bytes_out: summary.bytes_out,
        ..entry(process.about())
    }
}

//! What a local place runs, in the words of the wire.

use std::time::UNIX_EPOCH;

use outpost_engine::{About, Process, Session, State};
use outpost_protocol::{PathUri, ProcessEntry, ProcessState};

use crate::start::millis;

/// Everything of a session, oldest first.
pub(super) fn list(session: &Session) -> Vec<ProcessEntry> {
    let starting = session.starting();
    let live = session.processes();
    let mut entries: Vec<_> = starting.iter().map(|about| about_to_run(about)).collect();
    entries.extend(live.iter().map(started));
    entries.sort_by(|a, b| (a.started_at_ms, &a.process_id).cmp(&(b.started_at_ms, &b.process_id)));
    entries
}

fn about_to_run(about: &About) -> ProcessEntry {
    let since = about.started_at.duration_since(UNIX_EPOCH);
    ProcessEntry {
        process_id: about.id.clone(),
        pid: None,
        argv: about.argv.clone(),
        cwd: PathUri::from_path(&about.cwd),
        tty: about.tty,
        started_at_ms: since.map_or(0, millis),
        state: ProcessState::Starting,
        exit_code: None,
        next_seq: 1,
        bytes_out: 0,
    }
}

fn started(process: &Process) -> ProcessEntry {
    let summary = process.summary();
    ProcessEntry {
        pid: Some(process.pid()),
        state: match summary.state {
            State::Running => ProcessState::Running,
            State::Exited => ProcessState::Exited,
            State::Closed => ProcessState::Closed,
        },
        exit_code: summary.exit.map(|exit| exit.code),
        next_seq: summary.next_seq.0,
        bytes_out: summary.bytes_out,
        ..about_to_run(process.about())
    }
}

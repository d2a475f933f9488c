//! `process/list`.

use outpost_engine::Process;
use outpost_protocol::{ListResult, PathUri, ProcessEntry};

use crate::{connection::Caller, convert};

/// Everything of the caller's session, oldest first.
pub(crate) fn list(caller: &Caller) -> ListResult {
    let mut processes: Vec<_> = caller.session.processes().iter().map(entry).collect();
    processes
        .sort_by(|a, b| (a.started_at_ms, &a.process_id).cmp(&(b.started_at_ms, &b.process_id)));
    ListResult { processes }
}

fn entry(process: &Process) -> ProcessEntry {
    let summary = process.summary();
    ProcessEntry {
        process_id: process.id().to_owned(),
        pid: Some(process.pid()),
        argv: process.argv().to_vec(),
        cwd: PathUri::from_path(process.cwd()),
        tty: process.is_pty(),
        started_at_ms: process.started_at_ms(),
        state: convert::process_state(summary.state),
        exit_code: summary.exit.map(|exit| exit.code),
        next_seq: summary.next_seq.0,
        bytes_out: summary.bytes_out,
    }
}

//! `outpost ps`: lists detached work.

use std::{
    io,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outpost_client::{ProcessEntry, SessionEntry};
use serde::Serialize;

use super::runtime::run_command;
use crate::{
    args::Ps,
    detached::{self, ServerTarget},
    render::{out, processes, style::Styler},
};

pub(crate) fn run(args: &Ps) -> ExitCode {
    run_command(ps(args))
}

async fn ps(args: &Ps) -> anyhow::Result<ExitCode> {
    let server = ServerTarget::from_on(args.on.on.as_deref());
    let sessions = match server.find(detached::brief_options()).await? {
        Some(remote) => detached::list(&remote).await?,
        None => {
            out::note("your server is not running; `outpost run --detach` starts one");
            Vec::new()
        }
    };
    let shown = detached::processes(&sessions, args.all);
    if args.json {
        let entries: Vec<_> = shown.iter().map(|(s, p)| Entry::new(s, p)).collect();
        out::lines([serde_json::to_string_pretty(&entries)?])?;
    } else if !shown.is_empty() {
        let styler = Styler::on(&io::stdout());
        let width = out::width();
        out::lines(processes::table(&shown, now(), width, styler))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A process as JSON, with the field names of the wire and without the session id, which is a key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(flatten)]
    process: &'a ProcessEntry,
    /// The command line, quoted.
    command: String,
    /// The label of another client's session.
    label: Option<&'a str>,
    attached: bool,
}

impl<'a> Entry<'a> {
    fn new(session: &'a SessionEntry, process: &'a ProcessEntry) -> Self {
        Entry {
            process,
            command: detached::command_of(session, &process.argv),
            label: detached::label_of(session),
            attached: session.attached,
        }
    }
}

/// Time since 1970.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

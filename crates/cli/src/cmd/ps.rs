//! `outpost ps`: what there is.

use std::{
    io,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outpost_client::{ProcessEntry, SessionEntry};
use serde::Serialize;

use super::task::perform;
use crate::{
    args::Ps,
    detached::{self, Site},
    render::{out, paint::Paint, processes},
};

pub(crate) fn run(args: &Ps) -> ExitCode {
    perform(ps(args))
}

async fn ps(args: &Ps) -> anyhow::Result<ExitCode> {
    let site = Site::of(args.on.on.as_deref());
    let sessions = match site.find(detached::passing()).await? {
        Some(remote) => detached::list(&remote).await?,
        None => {
            out::note("no server of this user is running; `outpost run --detach` starts one");
            Vec::new()
        }
    };
    let shown = detached::processes(&sessions, args.all);
    if args.json {
        let entries: Vec<_> = shown.iter().map(|(s, p)| Entry::new(s, p)).collect();
        out::lines([serde_json::to_string_pretty(&entries)?])?;
    } else if !shown.is_empty() {
        let paint = Paint::on(&io::stdout());
        let width = out::width();
        out::lines(processes::table(&shown, now(), width, paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A process for programs: the words of the wire, without the key of its
/// session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(flatten)]
    process: &'a ProcessEntry,
    /// The command line, as a person would type it.
    command: String,
    /// What another client calls its session.
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

/// Since 1970.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

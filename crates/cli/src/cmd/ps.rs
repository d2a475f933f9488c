//! `outpost ps`: lists detached work.
//!
//! - [`network`]: lists the decisions about the network of a process

mod network;

use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outpost_client::{EndedProcess, ProcessEntry, ProcessState, SessionEntry};
use serde::Serialize;

use crate::{
    args::{On, ended_by_limit},
    detached::{self, command_of},
    render::{
        out,
        screen::{Cell, Screen, Style},
    },
    units::ago,
    user_server,
};

/// Arguments of `outpost ps`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ps
  outpost ps --all --json | jq '.[].command'
  outpost ps --net k3                     the hosts that k3xabcde asked for")]
pub(crate) struct Ps {
    #[command(flatten)]
    pub(crate) on: On,

    /// Also list processes of other clients and, with the scope admin, of other principals
    #[arg(short, long)]
    pub(crate) all: bool,

    /// List the decisions about the network of this process instead: an id, or a prefix of it
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub(crate) net: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the processes of detached work.
pub(crate) async fn ps(args: &Ps) -> anyhow::Result<ExitCode> {
    let server = args.on.endpoint()?;
    let on = server.as_ref();
    if let Some(id) = &args.net {
        return network::show(on, id, args.json).await;
    }
    let sessions = match detached::connect_if_running(on, detached::brief_options()).await? {
        Some(remote) => {
            let sessions = detached::list(&remote).await?;
            note_ended(&remote.ended_at_start().await?);
            sessions
        }
        None => {
            out::note(match user_server::was_killed() {
                true => user_server::WAS_KILLED,
                false => "your server is not running; `outpost run --detach` starts one",
            });
            Vec::new()
        }
    };
    let shown = detached::processes(&sessions, args.all);
    if args.json {
        let entries = shown.iter().map(|(session, process)| Entry {
            process,
            command: command_of(session, &process.argv),
            label: detached::label_of(session),
            principal: session.principal.as_deref(),
            attached: session.attached,
        });
        out::json(&entries.collect::<Vec<_>>())?;
    } else if !shown.is_empty() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        out::raw_lines(table(&shown, now.unwrap_or_default(), Screen::stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the processes that the server killed when it started.
fn note_ended(ended: &[EndedProcess]) {
    for process in ended {
        let command = &process.command;
        out::note(&format!(
            "a server before this one was killed and left process {} ({command}); \
             it was ended when this one started",
            process.pid
        ));
    }
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
    /// The principal, if it is another one than the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    attached: bool,
}

/// The table with its heading. `now` is the time since 1970.
fn table(
    processes: &[(&SessionEntry, &ProcessEntry)],
    now: Duration,
    screen: Screen,
) -> Vec<String> {
    let rows = processes
        .iter()
        .map(|(session, process)| row(session, process, now));
    let rows: Vec<_> = rows.collect();
    let others = processes.iter().map(|(session, _)| &session.principal);
    if others.clone().all(Option::is_none) {
        return screen.table(["ID", "STATE", "STARTED", "PID", "COMMAND"], &rows);
    }
    let rows = rows.into_iter().zip(others);
    let rows = rows.map(|([id, state, started, pid, command], principal)| {
        let principal = Cell::plain(principal.as_deref().unwrap_or("-"));
        [id, principal, state, started, pid, command]
    });
    let head = ["ID", "PRINCIPAL", "STATE", "STARTED", "PID", "COMMAND"];
    screen.table(head, &rows.collect::<Vec<_>>())
}

fn row(session: &SessionEntry, process: &ProcessEntry, now: Duration) -> [Cell; 5] {
    let since = now.saturating_sub(Duration::from_millis(process.started_at_ms));
    [
        Cell::plain(&process.process_id),
        state(process, session.attached),
        Cell::plain(ago(since)),
        Cell::plain(process.pid.map_or("-".to_owned(), |pid| pid.to_string())),
        Cell::plain(command_of(session, &process.argv)),
    ]
}

fn state(process: &ProcessEntry, attached: bool) -> Cell {
    let code = process.exit_code.unwrap_or(-1);
    let (mut text, style) = match process.state {
        ProcessState::Starting => ("starting".to_owned(), Style::Good),
        ProcessState::Running => ("running".to_owned(), Style::Good),
        ProcessState::Exited | ProcessState::Closed => {
            let style = if code == 0 { Style::Quiet } else { Style::Bad };
            (format!("exited {code}"), style)
        }
    };
    if let Some(limit) = ended_by_limit(process.ended_by) {
        text.push_str(", ");
        text.push_str(limit);
    }
    // A leftover process holds its output open.
    if process.state == ProcessState::Exited {
        text.push_str(", open");
    }
    if attached {
        text.push_str(", attached");
    }
    Cell::styled(text, style)
}

#[cfg(test)]
mod tests {
    use outpost_client::EndedBy;
    use serde_json::json;

    use super::*;

    fn process(id: &str, state: &str, exit_code: Option<i32>) -> ProcessEntry {
        serde_json::from_value(json!({
            "processId": id, "pid": if state == "starting" { None } else { Some(4711) },
            "argv": ["sh", "-c", "sleep 10"], "cwd": "file:///", "tty": false,
            "startedAtMs": 1_000, "state": state, "exitCode": exit_code, "nextSeq": 1, "bytesOut": 0
        }))
        .unwrap()
    }

    fn session(label: Option<&str>, attached: bool) -> SessionEntry {
        SessionEntry {
            session_id: "key".to_owned(),
            label: label.map(str::to_owned),
            principal: None,
            attached,
            created_at_ms: 0,
            expires_at_ms: None,
            processes: Vec::new(),
        }
    }

    #[test]
    fn table_shows_state_age_and_command() {
        let (ours, attached) = (session(Some("$ make"), false), session(Some("$ top"), true));
        let others = session(None, false);
        let rows = [
            process("k3xabcde", "running", None),
            process("zzzzzzzz", "running", None),
            process("p1", "exited", Some(0)),
            process("p2", "closed", Some(143)),
            process("p3", "starting", None),
            ProcessEntry {
                ended_by: Some(EndedBy::Oom),
                ..process("p4", "closed", Some(137))
            },
        ];
        let shown = [
            (&ours, &rows[0]),
            (&attached, &rows[1]),
            (&others, &rows[2]),
            (&others, &rows[3]),
            (&others, &rows[4]),
            (&others, &rows[5]),
        ];
        let table = table(&shown, Duration::from_secs(121), Screen::FILE);
        insta::assert_snapshot!(table.join("\n"), @r"
        ID        STATE                      STARTED    PID   COMMAND
        k3xabcde  running                    2 min ago  4711  make
        zzzzzzzz  running, attached          2 min ago  4711  top
        p1        exited 0, open             2 min ago  4711  sh -c 'sleep 10'
        p2        exited 143                 2 min ago  4711  sh -c 'sleep 10'
        p3        starting                   2 min ago  -     sh -c 'sleep 10'
        p4        exited 137, out of memory  2 min ago  4711  sh -c 'sleep 10'
        ");
    }

    #[test]
    fn processes_of_other_principals_are_marked() {
        let alice = SessionEntry {
            principal: Some("alice".to_owned()),
            ..session(Some("$ make"), false)
        };
        let own = session(Some("$ top"), false);
        let sessions = [
            SessionEntry {
                processes: vec![process("p1", "running", None)],
                ..alice
            },
            SessionEntry {
                processes: vec![process("p2", "running", None)],
                ..own
            },
        ];
        let shown = |all| {
            let shown = detached::processes(&sessions, all);
            table(&shown, Duration::from_secs(121), Screen::FILE).join("\n")
        };
        insta::assert_snapshot!(shown(false), @r"
        ID  STATE    STARTED    PID   COMMAND
        p2  running  2 min ago  4711  top
        ");
        insta::assert_snapshot!(shown(true), @r"
        ID  PRINCIPAL  STATE    STARTED    PID   COMMAND
        p1  alice      running  2 min ago  4711  make
        p2  -          running  2 min ago  4711  top
        ");
    }
}

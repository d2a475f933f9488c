//! A process is found again by what somebody typed.

use std::time::Duration;

use anyhow::{Context, bail};
use outpost_client::{
    Cause, DeliveryChoice, Distant, Error, Lease, Place, ProcessEntry, Remote, RemoteOptions,
    SessionEntry, Standing,
};
use tokio::time::timeout;

use super::{Site, id::Typed, label::is_detached_work, list::list, site::passing};
use crate::render::command_line::visible;

/// The code of a session that another connection has.
const SESSION_ATTACHED: i64 = -32010;
/// How long a connection may take to be closed after its questions were refused because
/// another one has the session.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// How often a session is taken from somebody who has just taken it from us.
const TAKES: usize = 8;

/// What becomes of another connection that has the session, where one needs to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is waited for, for a while.
    Wait,
    /// It has to let go.
    Take,
}

/// A process that was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The key of its session.
    pub(crate) session_id: String,
    /// Its name in there.
    pub(crate) process_id: String,
    /// Whether somebody else's connection has the session.
    pub(crate) attached: bool,
    /// What the server says of it.
    pub(crate) entry: ProcessEntry,
}

/// A process that was found, and the connection it was found on.
pub(crate) struct Opened {
    pub(crate) remote: Remote,
    pub(crate) found: Found,
}

impl Found {
    /// Its name as it can be printed: other clients name theirs as they like.
    pub(crate) fn name(&self) -> String {
        visible(&self.process_id)
    }
}

impl Opened {
    /// The process, to be looked at from here.
    pub(crate) fn process(&self) -> Distant {
        let own = self.remote.session_id() == Some(self.found.session_id.as_str());
        let session = (!own).then_some(self.found.session_id.as_str());
        self.remote.distant(session, &self.found.process_id)
    }

    /// Whether a question has failed because another connection has the session now.
    pub(crate) async fn is_taken_over(&self) -> bool {
        is_taken_over(&self.remote).await
    }
}

async fn is_taken_over(remote: &Remote) -> bool {
    let mut standing = remote.standing();
    let has_failed = |now: &Standing| matches!(now, Standing::Failed { .. });
    let Ok(Ok(failed)) = timeout(CLOSED_WITHIN, standing.wait_for(has_failed)).await else {
        return false;
    };
    matches!(
        *failed,
        Standing::Failed {
            cause: Cause::TakenOver,
            ..
        }
    )
}

/// Finds a process on a server by what was typed. Where that has the key of a
/// session in it, the session is attached to for as long as this is held.
pub(crate) async fn open(site: &Site, typed: &str, claim: Claim) -> anyhow::Result<Opened> {
    if let Typed::Keyed { session, process } = Typed::read(typed) {
        return resume(site, session, process, claim).await;
    }
    let Some(remote) = site.find(passing()).await? else {
        bail!("no process {typed}: no server of this user is running");
    };
    if matches!(site, Site::Url(_)) && !remote.capabilities().session_list {
        bail!(
            "no process {typed}: this server gives no list, so the whole name is needed, \
             SESSION/PROCESS as `outpost run --detach` printed it"
        );
    }
    let found = find(&remote, typed).await?;
    Ok(Opened { remote, found })
}

/// Finds a process by the beginning of its name, among all that runs on a server
/// which gives a list.
pub(crate) async fn find(remote: &Remote, typed: &str) -> anyhow::Result<Found> {
    pick(&list(remote).await?, typed)
}

async fn resume(site: &Site, session: &str, process: &str, claim: Claim) -> anyhow::Result<Opened> {
    let mut takes = 0;
    let (remote, processes) = loop {
        takes += usize::from(claim == Claim::Take);
        let remote = attach(site, session, process, claim).await?;
        match remote.processes().await {
            // Somebody was quicker to take it than we to ask. Who takes it away from others in turn
            // may meet one who does the same.
            Err(_) if takes < TAKES && is_taken_over(&remote).await => {}
            processes => break (remote, processes),
        }
    };
    let processes = processes.context("cannot list what runs in the session")?;
    let entry = processes
        .into_iter()
        .find(|entry| entry.process_id == process);
    let entry = entry.with_context(|| unknown(process))?;
    let found = Found {
        session_id: session.to_owned(),
        process_id: process.to_owned(),
        attached: false,
        entry,
    };
    Ok(Opened { remote, found })
}

async fn attach(site: &Site, session: &str, process: &str, claim: Claim) -> anyhow::Result<Remote> {
    let options = RemoteOptions {
        resume: Some(session.to_owned()),
        takeover: claim == Claim::Take,
        // Both stay as they are.
        lease: Lease::ServerDefault,
        delivery: DeliveryChoice::Push,
        ..passing()
    };
    match site.find(options).await {
        Err(error) if is_attached(&error) => bail!(
            "another command is following {process} or attached to it, and by SESSION/PROCESS only \
             one can be; end that one, or use the server's unix socket, where any number can"
        ),
        Ok(None) => bail!("no process {process}: no server of this user is running"),
        Ok(Some(remote)) => Ok(remote),
        Err(error) => Err(error),
    }
}

fn is_attached(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<Error>(),
        Some(Error::Refused {
            code: SESSION_ATTACHED,
            ..
        })
    )
}

/// Picks the one process that was meant. Detached work goes first: what other
/// clients call their processes is no concern of who types.
fn pick(sessions: &[SessionEntry], typed: &str) -> anyhow::Result<Found> {
    for own in [true, false] {
        let of_kind = sessions
            .iter()
            .filter(|session| is_detached_work(session) == own);
        let all = of_kind.flat_map(|session| {
            let found = |entry: &ProcessEntry| Found {
                session_id: session.session_id.clone(),
                process_id: entry.process_id.clone(),
                attached: session.attached,
                entry: entry.clone(),
            };
            session.processes.iter().map(found).collect::<Vec<_>>()
        });
        let mut meant: Vec<_> = all
            .filter(|found| !typed.is_empty() && found.process_id.starts_with(typed))
            .collect();
        let exact = |found: &Found| found.process_id == typed;
        if meant.iter().filter(|found| exact(found)).count() == 1 {
            meant.retain(exact);
        }
        match meant.len() {
            0 => {}
            1 => return Ok(meant.remove(0)),
            _ => {
                let names: Vec<_> = meant
                    .iter()
                    .map(|found| visible(&found.process_id))
                    .collect();
                bail!(
                    "{typed} is ambiguous: it could be {}; type more of it",
                    names.join(", ")
                );
            }
        }
    }
    bail!(unknown(typed))
}

fn unknown(typed: &str) -> String {
    format!("no process {typed}; `outpost ps` shows what there is")
}

#[cfg(test)]
pub(super) mod examples {
    use outpost_client::{ProcessEntry, SessionEntry};

    pub(in crate::detached) fn process(id: &str) -> ProcessEntry {
        serde_json::from_value(serde_json::json!({
            "processId": id, "pid": 1, "argv": ["make"], "cwd": "file:///", "tty": false,
            "startedAtMs": 0, "state": "running", "exitCode": null, "nextSeq": 1, "bytesOut": 0
        }))
        .unwrap()
    }

    pub(in crate::detached) fn session(
        id: &str,
        label: &str,
        processes: &[ProcessEntry],
    ) -> SessionEntry {
        SessionEntry {
            session_id: id.to_owned(),
            label: Some(label.to_owned()),
            attached: false,
            created_at_ms: 0,
            expires_at_ms: None,
            processes: processes.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        examples::{process, session},
        *,
    };

    fn picked(sessions: &[SessionEntry], typed: &str) -> Result<(String, String), String> {
        pick(sessions, typed)
            .map(|found| (found.session_id, found.process_id))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_beginning_of_a_name_is_enough_if_it_is_unique() {
        let sessions = [
            session("1", "$ a", &[process("abcd")]),
            session("2", "$ b", &[process("abxy")]),
        ];
        let ok = |session: &str, process: &str| Ok((session.to_owned(), process.to_owned()));
        assert_eq!(picked(&sessions, "abc"), ok("1", "abcd"));
        assert_eq!(picked(&sessions, "abxy"), ok("2", "abxy"));
        let words = picked(&sessions, "ab").unwrap_err();
        assert!(
            words.contains("ambiguous") && words.contains("abcd, abxy"),
            "{words}"
        );
        for unknown in ["", "b", "abcde"] {
            let words = picked(&sessions, unknown).unwrap_err();
            assert!(words.contains("no process"), "{words}");
        }
    }

    #[test]
    fn a_whole_name_is_meant_even_where_another_begins_with_it() {
        let sessions = [session("1", "$ a", &[process("ab"), process("abc")])];
        assert_eq!(picked(&sessions, "ab").unwrap().1, "ab");
    }

    #[test]
    fn what_other_clients_run_is_found_where_no_detached_work_is_meant() {
        let sessions = [
            session("1", "agent", &[process("p1"), process("q")]),
            session("2", "$ a", &[process("p2345678")]),
        ];
        assert_eq!(picked(&sessions, "p").unwrap().1, "p2345678");
        assert_eq!(picked(&sessions, "p1").unwrap().1, "p1");
        assert_eq!(picked(&sessions, "q").unwrap().1, "q");
    }
}

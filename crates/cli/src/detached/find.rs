//! Finds a process by its name.

use std::time::Duration;

use anyhow::{Context, bail};
use outpost_client::{
    ConnectionState, DeliveryMode, Error, ErrorKind, Executor, Lease, ProcessEntry, ProcessPeek,
    ReconnectFailure, RemoteExecutor, SessionEntry,
};
use tokio::time::timeout;

use super::{
    server::{brief_options, connect_if_running},
    session_keys::{SessionKey, SessionKeys},
    sessions::{is_detached_work, list},
};
use crate::{endpoint::Endpoint, render::visible::visible};

/// Timeout for the server to close a connection after another connection took over the session.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of takeovers, if two commands keep taking over the session from each other.
const MAX_TAKEOVERS: usize = 8;

/// Behaviour if another connection has the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfAttached {
    /// Wait for it for a while.
    Wait,
    /// Take over the session.
    Take,
}

/// A process on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundProcess {
    /// The id of its session.
    pub(crate) session_id: String,
    /// Whether another connection has the session.
    pub(crate) attached: bool,
    /// The server's description.
    pub(crate) entry: ProcessEntry,
}

/// A process, and the connection through which it was found.
pub(crate) struct Opened {
    pub(crate) remote: RemoteExecutor,
    pub(crate) found: FoundProcess,
}

impl FoundProcess {
    /// The id with hidden characters escaped: other clients choose any ids.
    pub(crate) fn name(&self) -> String {
        visible(&self.entry.process_id).into_owned()
    }
}

impl Opened {
    /// A handle to inspect the process.
    pub(crate) fn process(&self) -> ProcessPeek {
        let own = self.remote.session_id() == Some(self.found.session_id.as_str());
        let session = (!own).then_some(self.found.session_id.as_str());
        self.remote.inspect(session, &self.found.entry.process_id)
    }

    /// Returns whether a request failed because another connection took over the session.
    pub(crate) async fn is_taken_over(&self) -> bool {
        is_taken_over(&self.remote).await
    }
}

async fn is_taken_over(remote: &RemoteExecutor) -> bool {
    let mut state = remote.connection_state();
    let has_failed = |now: &ConnectionState| matches!(now, ConnectionState::Failed { .. });
    let Ok(Ok(failed)) = timeout(TAKEOVER_TIMEOUT, state.wait_for(has_failed)).await else {
        return false;
    };
    has_been_taken_over(&failed)
}

/// Returns whether the connection failed because another connection took over the session.
pub(crate) fn has_been_taken_over(state: &ConnectionState) -> bool {
    let ConnectionState::Failed { cause, .. } = state else {
        return false;
    };
    *cause == ReconnectFailure::TakenOver
}

/// Finds a process by its name. If the server doesn't list its sessions, the session is attached to
/// until the result is dropped.
pub(crate) async fn open(
    on: Option<&Endpoint>,
    name: &str,
    if_attached: IfAttached,
) -> anyhow::Result<Opened> {
    // SESSION/PROCESS, which other users can read in /proc.
    if let Some((session, process)) = name.split_once('/') {
        let key = SessionKey {
            process: process.to_owned(),
            session: session.to_owned(),
        };
        return resume(on, &key, if_attached).await;
    }
    if let Some(server) = on.filter(|on| !on.lists_sessions())
        && let Ok(keys) = SessionKeys::of_user()
        && let Some(key) = keys.find(server.url(), name)?
    {
        let opened = resume(on, &key, if_attached).await;
        if opened.as_ref().is_err_and(is_gone) {
            keys.remove(&key.process);
        }
        return opened;
    }
    let Some(remote) = connect_if_running(on, brief_options()).await? else {
        match started_on(name) {
            Some(server) => bail!(unknown_here(name, &server)),
            None => bail!("no process {name}: your server is not running"),
        }
    };
    if on.is_some() && !remote.capabilities().session_list {
        let keys = SessionKeys::of_user()?.shown();
        bail!(
            "no process {name}: this server doesn't list its processes, and {keys} has no key of \
             one with this id; use the account that started it"
        );
    }
    let found = pick(&list(&remote).await?, name)?;
    let found = found.with_context(|| unknown(on, name))?;
    Ok(Opened { remote, found })
}

/// Returns whether a process or its session no longer exists.
fn is_gone(error: &anyhow::Error) -> bool {
    error.is::<Gone>()
}

/// A process that no longer exists.
#[derive(Debug, thiserror::Error)]
#[error("no process {process}: it has ended, and its record was removed (closed_retention)")]
struct Gone {
    process: String,
}

async fn resume(
    on: Option<&Endpoint>,
    key: &SessionKey,
    if_attached: IfAttached,
) -> anyhow::Result<Opened> {
    let SessionKey { process, session } = key;
    let mut takeovers = 0;
    let (remote, processes) = loop {
        takeovers += usize::from(if_attached == IfAttached::Take);
        let remote = attach(on, session, process, if_attached).await?;
        match remote.processes().await {
            // Another command took over the session in between. It may do so repeatedly, hence the
            // limit.
            Err(_) if takeovers < MAX_TAKEOVERS && is_taken_over(&remote).await => {}
            processes => break (remote, processes),
        }
    };
    let processes = processes.context("cannot list the session's processes")?;
    let entry = processes
        .into_iter()
        .find(|entry| entry.process_id == *process);
    let entry = entry.ok_or_else(|| Gone {
        process: process.clone(),
    })?;
    let found = FoundProcess {
        session_id: session.clone(),
        attached: false,
        entry,
    };
    Ok(Opened { remote, found })
}

async fn attach(
    on: Option<&Endpoint>,
    session: &str,
    process: &str,
    if_attached: IfAttached,
) -> anyhow::Result<RemoteExecutor> {
    let options = brief_options()
        .resume(session.to_owned())
        .takeover(if_attached == IfAttached::Take)
        // Keep the session's lease and delivery.
        .lease(Lease::ServerDefault)
        .delivery(DeliveryMode::Push);
    let remote = connect_if_running(on, options).await;
    let rejection = match &remote {
        Err(error) => match error.downcast_ref() {
            Some(Error::Rejected { kind, .. }) => Some(*kind),
            _ => None,
        },
        Ok(_) => None,
    };
    match rejection {
        Some(ErrorKind::SessionAttached) => bail!(
            "cannot use {process}: another command is attached to its session, which allows only \
             one over ws://; end that command, or use the server's unix socket, which allows more"
        ),
        // Its message contains the session id, which is a key.
        Some(ErrorKind::UnknownSession) => bail!(Gone {
            process: process.to_owned(),
        }),
        _ => {}
    }
    remote?.with_context(|| format!("no process {process}: your server is not running"))
}

/// Picks a process by id or prefix. Detached work takes precedence over processes of other clients.
fn pick(sessions: &[SessionEntry], name: &str) -> anyhow::Result<Option<FoundProcess>> {
    for own in [true, false] {
        let of_kind = sessions
            .iter()
            .filter(|session| is_detached_work(session) == own);
        let all = of_kind.flat_map(|session| {
            session.processes.iter().map(|entry| FoundProcess {
                session_id: session.session_id.clone(),
                attached: session.attached,
                entry: entry.clone(),
            })
        });
        let mut matching: Vec<_> = all
            .filter(|found| !name.is_empty() && found.entry.process_id.starts_with(name))
            .collect();
        let exact = |found: &FoundProcess| found.entry.process_id == name;
        if matching.iter().filter(|found| exact(found)).count() == 1 {
            matching.retain(exact);
        }
        if matching.len() > 1 {
            let names: Vec<_> = matching.iter().map(FoundProcess::name).collect();
            let names = names.join(", ");
            bail!("{name} is ambiguous: it matches {names}; use a longer prefix");
        }
        if let Some(found) = matching.pop() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The command that attaches to a process again.
pub(crate) fn attach_command(on: Option<&Endpoint>, found: &FoundProcess) -> String {
    let id = found.name();
    match on {
        Some(on) => format!("outpost attach --on {} {id}", on.description()),
        None => format!("outpost attach {id}"),
    }
}

/// The server of a process that was started with `--on`.
fn started_on(name: &str) -> Option<String> {
    SessionKeys::of_user().ok()?.server_of(name)
}

fn unknown(on: Option<&Endpoint>, name: &str) -> String {
    match (on.map(Endpoint::description), started_on(name)) {
        (None, Some(server)) => unknown_here(name, &server),
        (None, None) => format!("no process {name}; `outpost ps` lists the processes"),
        (Some(on), _) => format!("no process {name}; `outpost ps --on {on}` lists the processes"),
    }
}

fn unknown_here(name: &str, server: &str) -> String {
    format!("no process {name} on your server: it was started on {server}; use --on {server}")
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
            principal: None,
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

    fn picked(sessions: &[SessionEntry], name: &str) -> Result<(String, String), String> {
        let found = pick(sessions, name).map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| unknown(None, name))?;
        Ok((found.session_id, found.entry.process_id))
    }

    #[test]
    fn unique_prefix_finds_the_process() {
        let sessions = [
            session("1", "$ a", &[process("abcd")]),
            session("2", "$ b", &[process("abxy")]),
        ];
        let ok = |session: &str, process: &str| Ok((session.to_owned(), process.to_owned()));
        assert_eq!(picked(&sessions, "abc"), ok("1", "abcd"));
        assert_eq!(picked(&sessions, "abxy"), ok("2", "abxy"));
        let message = picked(&sessions, "ab").unwrap_err();
        assert!(
            message.contains("ambiguous") && message.contains("abcd, abxy"),
            "{message}"
        );
        for unknown in ["", "b", "abcde"] {
            let message = picked(&sessions, unknown).unwrap_err();
            assert!(message.contains("no process"), "{message}");
        }
    }

    #[test]
    fn exact_id_wins_over_longer_ids() {
        let sessions = [session("1", "$ a", &[process("ab"), process("abc")])];
        assert_eq!(picked(&sessions, "ab").unwrap().1, "ab");
    }

    #[test]
    fn other_clients_processes_are_found_after_detached_work() {
        let sessions = [
            session("1", "agent", &[process("p1"), process("q")]),
            session("2", "$ a", &[process("p2345678")]),
        ];
        assert_eq!(picked(&sessions, "p").unwrap().1, "p2345678");
        assert_eq!(picked(&sessions, "p1").unwrap().1, "p1");
        assert_eq!(picked(&sessions, "q").unwrap().1, "q");
    }
}

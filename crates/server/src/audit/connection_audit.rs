//! Records the events of one connection and of the processes that it starts.

use std::sync::{Arc, OnceLock};

use outpost_engine::{Exit, NotRecorded, Process, ProcessObserver, Session, Start};
use outpost_fetch::RedirectObserver;
use outpost_protocol::{ErrorKind, Method, NetworkDecision};
use serde_json::value::RawValue;

use super::{AuditLog, Event, Subject, signal_request::SignalRequest};

/// Characters of a session id that are recorded. The whole id would grant access to the session.
const SESSION_CHARS: usize = 8;

/// The audit log as one connection uses it. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionAudit(Option<Arc<Client>>);

/// The client of a connection, for its lines.
#[derive(Debug)]
struct Client {
    log: Arc<AuditLog>,
    connection: String,
    principal: String,
    address: String,
    /// The beginning of the id of its session, once it has one.
    session: OnceLock<String>,
}

impl ConnectionAudit {
    /// Records nothing without a log.
    pub(crate) fn new(log: Option<&Arc<AuditLog>>, principal: &str, address: &str) -> Self {
        ConnectionAudit(log.map(|log| {
            Arc::new(Client {
                connection: log.connection_name(),
                log: Arc::clone(log),
                principal: principal.to_owned(),
                address: address.to_owned(),
                session: OnceLock::new(),
            })
        }))
    }

    /// Sets the session of the connection, for the events that follow.
    pub(crate) fn set_session(&self, session: &Session) {
        if let Some(client) = &self.0 {
            let _ = client.session.set(prefix(session.id().reveal()));
        }
    }

    /// Whether events are recorded.
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Records that the client has connected. Its end is recorded when the result is dropped.
    pub(crate) fn connected(&self) -> ConnectedClient {
        self.record(None, &Event::Connect {});
        ConnectedClient {
            audit: self.clone(),
            reason: "internal_error",
        }
    }

    /// Records an event, whether or not the log can be written.
    pub(crate) fn record(&self, process: Option<&str>, event: &Event<'_>) {
        if let Some(client) = &self.0 {
            let _ = client.write(None, process, event);
        }
    }

    /// Records work that is about to begin. Fails if it must not, because the log is required and cannot be
    /// written.
    pub(crate) fn admit(
        &self,
        process: Option<&str>,
        event: &Event<'_>,
    ) -> Result<(), NotRecorded> {
        let Some(client) = &self.0 else {
            return Ok(());
        };
        client.log.check()?;
        client.write(None, process, event)
    }

    /// Records a process that is about to start, and observes it.
    pub(crate) fn admit_start(&self, start: &mut Start) -> Result<(), NotRecorded> {
        let Some(client) = &self.0 else {
            return Ok(());
        };
        self.admit(Some(&start.id), &Event::start(start))?;
        start.observer = Some(Arc::new(ProcessAudit {
            client: Arc::clone(client),
            process: start.id.clone(),
        }));
        Ok(())
    }

    /// Records a request if it ends or signals processes. Ending them is no new work: it goes on while the log
    /// cannot be written.
    pub(crate) fn record_signal(&self, method: Method, params: Option<&RawValue>) {
        let ends_processes = matches!(
            method,
            Method::ProcessSignal
                | Method::ProcessTerminate
                | Method::ProcessKill
                | Method::CommandExecTerminate
                | Method::SessionClose
        );
        if let (Some(client), true) = (&self.0, ends_processes) {
            let target = SignalRequest::parse(params);
            let session = target.session().map(|id| prefix(&id));
            let process = target.process();
            let event = target.event(method.name());
            let _ = client.write(session.as_deref(), process.as_deref(), &event);
        }
    }

    /// Returns the observer of the redirects of an HTTP request, if events are recorded.
    pub(crate) fn redirect_observer(&self) -> Option<Arc<dyn RedirectObserver>> {
        let client = self.0.clone()?;
        Some(client)
    }
}

impl Client {
    /// Records an event of a session, or of its own.
    fn write(
        &self,
        session: Option<&str>,
        process: Option<&str>,
        event: &Event<'_>,
    ) -> Result<(), NotRecorded> {
        let own = self.session.get().map(String::as_str);
        let subject = Subject {
            principal: Some(&self.principal),
            connection: Some(&self.connection),
            address: Some(&self.address),
            session: session.or(own),
            process,
        };
        self.log.record(subject, event)
    }
}

impl RedirectObserver for Client {
    fn redirected(&self, method: &str, host: &str) {
        let _ = self.write(None, None, &Event::http(method, host));
    }
}

fn prefix(id: &str) -> String {
    id.chars().take(SESSION_CHARS).collect()
}

/// Records the end of a connection when it is dropped, even by a panic.
pub(crate) struct ConnectedClient {
    audit: ConnectionAudit,
    /// Why the connection has ended.
    pub(crate) reason: &'static str,
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        let event = Event::Disconnect {
            reason: self.reason,
        };
        self.audit.record(None, &event);
    }
}

/// Records the exit of a process and the decisions of its proxy.
#[derive(Debug)]
struct ProcessAudit {
    client: Arc<Client>,
    process: String,
}

impl ProcessAudit {
    fn record(&self, event: &Event<'_>) {
        let _ = self.client.write(None, Some(&self.process), event);
    }
}

impl ProcessObserver for ProcessAudit {
    fn not_started(&self, error: ErrorKind) {
        self.record(&Event::not_started(error));
    }

    fn exited(&self, process: &Process, exit: &Exit) {
        let network = process.network_activity();
        self.record(&Event::Exit {
            code: Some(exit.code),
            ended_by: exit.ended_by,
            error: None,
            lost_decisions: network.map_or(0, |network| network.dropped_events()),
        });
    }

    fn network_decided(&self, decision: &NetworkDecision) {
        self.record(&Event::network(decision));
    }
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use outpost_rpc::CloseReason;

    /// The reasons in their order.
    fn next(reason: &CloseReason) -> Option<CloseReason> {
        Some(match reason {
            CloseReason::Normal => CloseReason::GoingAway,
            CloseReason::GoingAway => CloseReason::ProtocolError,
            CloseReason::ProtocolError => CloseReason::TakenOver,
            CloseReason::TakenOver => CloseReason::GivesWay,
            CloseReason::GivesWay => CloseReason::Unread,
            CloseReason::Unread => CloseReason::Unauthorized,
            CloseReason::Unauthorized => return None,
        })
    }

    #[test]
    fn documentation_lists_all_reasons_of_a_disconnect() {
        let page = include_str!("../../../../docs/deploy.md");
        let mut rows = page.lines();
        let row = rows.find(|line| line.starts_with("| `connect`, `disconnect`"));
        let (_, list) = row
            .expect("a row")
            .split_once("`reason`: ")
            .expect("a list");
        let documented: Vec<_> = list.split('`').skip(1).step_by(2).collect();
        let reasons = successors(Some(CloseReason::Normal), next).map(CloseReason::name);
        let reasons: Vec<_> = reasons.chain(["internal_error"]).collect();
        assert_eq!(documented, reasons);
    }
}

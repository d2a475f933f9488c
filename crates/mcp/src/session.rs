//! A conversation with one server.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
        ClientRequest, ErrorCode, JsonObject, PaginatedRequestParams, ProgressNotificationParam,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResult, RequestId, Resource,
        ResourceTemplate, ServerPeerInfo, ServerResult, Tool,
    },
    service::{ClientInitializeError, PeerRequestOptions, RunningService},
    transport::Transport,
};
use tokio::{
    sync::{broadcast::error::RecvError, mpsc},
    time::timeout,
};
use tokio_util::task::TaskTracker;

use crate::{
    Limits,
    account::{Account, Fault, excerpt},
    error::{CallError, Failure},
    host::Host,
};

/// How long a farewell may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// How far a call has come, in the words of its server.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// So far.
    pub done: f64,
    /// Of so much, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The newest revision is asked for first.
    Newest,
    /// In the way of the older ones, at once.
    Older,
    /// In the way of the newest, however long it takes.
    NewestOnly,
}

/// A server that is ready.
pub(crate) struct Session {
    peer: Peer<RoleClient>,
    host: Host,
    /// Whoever closes the session takes it; dropped with the session, it ends by
    /// itself.
    running: Mutex<Option<RunningService<RoleClient, Host>>>,
    account: Account,
    limits: Limits,
    /// Notes about calls that nobody waits for any more, on their way.
    farewells: TaskTracker,
}

impl Session {
    /// Opens a session; the caller says how long that may take.
    pub(crate) async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        account: Account,
        opening: Opening,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let lifecycle = match opening {
            Opening::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Opening::Older => ClientLifecycleMode::Initialize,
            Opening::NewestOnly => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::LATEST],
            },
        };
        let host = Host::new();
        let served = host
            .clone()
            .serve_with_lifecycle(transport, lifecycle)
            .await;
        let running = match served {
            Ok(running) => running,
            Err(error) => return Err(refused(error, &account)),
        };
        let answered = running.peer().peer_info();
        if let Some(info) = answered
            && !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version)
        {
            let revision = excerpt(info.protocol_version.as_str().as_bytes());
            let _ = timeout(CLOSE_WITHIN, running.cancel()).await;
            return Err(Failure::Revision { revision });
        }
        Ok(Session {
            peer: running.peer().clone(),
            host,
            running: Mutex::new(Some(running)),
            account,
            limits: limits.clone(),
            farewells: TaskTracker::new(),
        })
    }

    /// Waits until the server is gone.
    pub(crate) async fn ended(&self) -> Fault {
        self.account.ended().await
    }

    /// What the server says of itself.
    pub(crate) fn about(&self) -> Option<ServerPeerInfo> {
        self.peer.peer_info().map(|info| (*info).clone())
    }

    /// Ends the server, and what is still under way with it.
    pub(crate) async fn close(&self) {
        self.farewells.close();
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(running) = running else { return };
        let _ = timeout(CLOSE_WITHIN, async {
            self.farewells.wait().await;
            running.cancel().await
        })
        .await;
    }

    pub(crate) async fn tools(&self, within: Duration) -> Result<Vec<Tool>, CallError> {
        if !self.offers(|info| info.capabilities.tools.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_tools(cursor).await?;
            Ok((page.tools, page.next_cursor))
        };
        self.all(within, page).await
    }

    pub(crate) async fn resources(&self, within: Duration) -> Result<Vec<Resource>, CallError> {
        if !self.offers(|info| info.capabilities.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_resources(cursor).await?;
            Ok((page.resources, page.next_cursor))
        };
        self.all(within, page).await
    }

    pub(crate) async fn resource_templates(
        &self,
        within: Duration,
    ) -> Result<Vec<ResourceTemplate>, CallError> {
        if !self.offers(|info| info.capabilities.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_resource_templates(cursor).await?;
            Ok((page.resource_templates, page.next_cursor))
        };
        self.all(within, page).await
    }

    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        within: Duration,
    ) -> Result<ReadResourceResult, CallError> {
        let params = ReadResourceRequestParams::new(uri);
        let read = timeout(within, self.peer.read_resource(params)).await;
        match read {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(self.explained(error).await),
            Err(_) => Err(CallError::TimedOut { within }),
        }
    }

    /// Calls a tool. Dropping this tells the server that nobody waits any more.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<Progress>>,
        within: Duration,
    ) -> Result<CallToolResult, CallError> {
        let mut heard = self.host.progress();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(within);
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.explained(error).await),
        };
        let token = handle.progress_token.clone();
        let tell = |note: ProgressNotificationParam| {
            if let Some(progress) = progress.filter(|_| note.progress_token == token) {
                // Who doesn't keep up misses a step, and not the result.
                let _ = progress.try_send(note.into());
            }
        };
        let mut unfinished = Unfinished {
            session: self,
            id: Some(handle.id.clone()),
        };
        let answer = handle.await_response();
        tokio::pin!(answer);
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                note = heard.recv() => match note {
                    Ok(note) => tell(note),
                    Err(RecvError::Lagged(_)) => {}
                    // Then there is no session either, and the answer says so.
                    Err(RecvError::Closed) => break answer.await,
                },
            }
        };
        unfinished.id = None;
        while let Ok(note) = heard.try_recv() {
            tell(note);
        }
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => Err(CallError::InputRequired),
            Ok(_) => Err(CallError::Unexpected),
            Err(error) => Err(self.explained(error).await),
        }
    }

    fn offers(&self, what: impl Fn(&ServerPeerInfo) -> bool) -> bool {
        self.peer.peer_info().is_some_and(|info| what(&info))
    }

    /// All pages of a list, within the time of a call. Some servers offer a kind
    /// of thing and don't know all the lists of it: those have nothing in them.
    async fn all<T>(
        &self,
        within: Duration,
        page: impl AsyncFn(
            Option<PaginatedRequestParams>,
        ) -> Result<(Vec<T>, Option<String>), ServiceError>,
    ) -> Result<Vec<T>, CallError> {
        let listing = async {
            let mut all = Vec::new();
            let mut cursor = None;
            loop {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let (items, next) = page(Some(params)).await?;
                all.extend(items);
                if next.is_none() || all.len() >= self.limits.listed {
                    all.truncate(self.limits.listed);
                    return Ok(all);
                }
                cursor = next;
            }
        };
        match timeout(within, listing).await {
            Ok(Ok(all)) => Ok(all),
            Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                Ok(Vec::new())
            }
            Ok(Err(error)) => Err(self.explained(error).await),
            Err(_) => Err(CallError::TimedOut { within }),
        }
    }

    /// What the SDK says, with the reason where it knows only that there is one.
    async fn explained(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => CallError::Refused(Box::new(error)),
            ServiceError::Timeout { timeout: within } => CallError::TimedOut { within },
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            ServiceError::TransportSend(error) => match self.account.fault() {
                Some(fault) => CallError::Ended(fault),
                None => CallError::NotSent(error.error),
            },
            ServiceError::TransportClosed => {
                CallError::Ended(self.account.fault().unwrap_or(Fault::Closed))
            }
            _ => CallError::Unexpected,
        }
    }
}

impl From<ProgressNotificationParam> for Progress {
    fn from(note: ProgressNotificationParam) -> Self {
        Progress {
            done: note.progress,
            total: note.total,
            message: note.message,
        }
    }
}

/// A call whose answer hasn't come. Dropped like that, it is called off.
struct Unfinished<'a> {
    session: &'a Session,
    id: Option<RequestId>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.session.peer.clone();
        let off = CancelledNotificationParam::new(Some(id), None);
        self.session.farewells.spawn(async move {
            // A server that is gone needn't know.
            let _ = peer.notify_cancelled(off).await;
        });
    }
}

/// Why there is no session: the SDK knows that the connection is gone, and the
/// account may know why.
fn refused(error: ClientInitializeError, account: &Account) -> Failure {
    let known = account.fault().filter(|fault| *fault != Fault::Closed);
    match (error, known) {
        (ClientInitializeError::LegacyFallbackFailed { fallback, .. }, _) => {
            refused(*fallback, account)
        }
        (
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. },
            Some(fault),
        ) => Failure::Ended(fault),
        (ClientInitializeError::TransportError { error, .. }, None) => {
            Failure::Unreachable(error.error)
        }
        (error, _) => Failure::Handshake(Box::new(error)),
    }
}

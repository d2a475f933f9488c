//! An MCP session with one server.

use std::time::Duration;

use parking_lot::Mutex;
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
    CallError, EndReason, Limits, ServerDiagnostics, ServerFailure, diagnostics::preview,
    handler::NotificationHandler,
};

/// Timeout for closing a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Progress of a call, as reported by the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Progress so far.
    pub done: f64,
    /// The final value, if known.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// How a session negotiates the MCP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// `server/discover`, with `initialize` as the fallback.
    Auto,
    /// `initialize` only.
    Initialize,
    /// `server/discover` only.
    Discover,
}

/// A session with a ready server.
pub(crate) struct Session {
    peer: Peer<RoleClient>,
    handler: NotificationHandler,
    /// Taken by `close`. Dropping it ends the session.
    running: Mutex<Option<RunningService<RoleClient, NotificationHandler>>>,
    diagnostics: ServerDiagnostics,
    limits: Limits,
    /// Tasks that send cancellation notifications.
    cancellations: TaskTracker,
}

impl Session {
    /// Opens a session. The caller bounds the time.
    pub(crate) async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        diagnostics: ServerDiagnostics,
        handshake: Handshake,
        limits: &Limits,
    ) -> Result<Self, ServerFailure> {
        let lifecycle = match handshake {
            Handshake::Auto => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Handshake::Initialize => ClientLifecycleMode::Initialize,
            Handshake::Discover => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::LATEST],
            },
        };
        let handler = NotificationHandler::new();
        let served = handler
            .clone()
            .serve_with_lifecycle(transport, lifecycle)
            .await;
        let running = match served {
            Ok(running) => running,
            Err(error) => return Err(handshake_failure(error, &diagnostics)),
        };
        if let Some(info) = running.peer().peer_info()
            && !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version)
        {
            let revision = preview(info.protocol_version.as_str().as_bytes());
            let _ = timeout(CLOSE_TIMEOUT, running.cancel()).await;
            return Err(ServerFailure::Revision { revision });
        }
        Ok(Session {
            peer: running.peer().clone(),
            handler,
            running: Mutex::new(Some(running)),
            diagnostics,
            limits: limits.clone(),
            cancellations: TaskTracker::new(),
        })
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(&self) -> EndReason {
        self.diagnostics.ended().await
    }

    /// Returns the server's self-description.
    pub(crate) fn peer_info(&self) -> Option<ServerPeerInfo> {
        self.peer.peer_info().map(|info| (*info).clone())
    }

    /// Ends the session and the server, after pending cancellations were sent.
    pub(crate) async fn close(&self) {
        self.cancellations.close();
        let running = self.running.lock().take();
        let Some(running) = running else { return };
        let _ = timeout(CLOSE_TIMEOUT, async {
            self.cancellations.wait().await;
            running.cancel().await
        })
        .await;
    }

    pub(crate) async fn tools(&self, within: Duration) -> Result<Vec<Tool>, CallError> {
        if !self.supports(|info| info.capabilities.tools.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_tools(cursor).await?;
            Ok((page.tools, page.next_cursor))
        };
        self.list_all(within, page).await
    }

    pub(crate) async fn resources(&self, within: Duration) -> Result<Vec<Resource>, CallError> {
        if !self.supports(|info| info.capabilities.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_resources(cursor).await?;
            Ok((page.resources, page.next_cursor))
        };
        self.list_all(within, page).await
    }

    pub(crate) async fn resource_templates(
        &self,
        within: Duration,
    ) -> Result<Vec<ResourceTemplate>, CallError> {
        if !self.supports(|info| info.capabilities.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = async |cursor| {
            let page = self.peer.list_resource_templates(cursor).await?;
            Ok((page.resource_templates, page.next_cursor))
        };
        self.list_all(within, page).await
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
            Ok(Err(error)) => Err(self.call_error(error)),
            Err(_) => Err(CallError::TimedOut { within }),
        }
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<Progress>>,
        within: Duration,
    ) -> Result<CallToolResult, CallError> {
        let mut notifications = self.handler.progress();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(within);
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.call_error(error)),
        };
        let token = handle.progress_token.clone();
        let forward = |notification: ProgressNotificationParam| {
            if let Some(progress) = progress.filter(|_| notification.progress_token == token) {
                // A slow receiver misses steps, but never delays the result.
                let _ = progress.try_send(notification.into());
            }
        };
        let mut cancel_guard = CancelOnDrop {
            session: self,
            id: Some(handle.id.clone()),
        };
        let response = handle.await_response();
        tokio::pin!(response);
        let response = loop {
            tokio::select! {
                response = &mut response => break response,
                notification = notifications.recv() => match notification {
                    Ok(notification) => forward(notification),
                    Err(RecvError::Lagged(_)) => {}
                    // The session has ended, which the response reports.
                    Err(RecvError::Closed) => break response.await,
                },
            }
        };
        cancel_guard.id = None;
        while let Ok(notification) = notifications.try_recv() {
            forward(notification);
        }
        match response {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => Err(CallError::InputRequired),
            Ok(_) => Err(CallError::Unexpected),
            Err(error) => Err(self.call_error(error)),
        }
    }

    fn supports(&self, capability: impl Fn(&ServerPeerInfo) -> bool) -> bool {
        self.peer.peer_info().is_some_and(|info| capability(&info))
    }

    /// Fetches all pages of a list. Some servers declare a capability without implementing
    /// all of its lists; an unknown method counts as an empty list.
    async fn list_all<T>(
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
            Ok(Err(error)) => Err(self.call_error(error)),
            Err(_) => Err(CallError::TimedOut { within }),
        }
    }

    /// Converts an rmcp error, adding the reason why the server ended.
    fn call_error(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => CallError::Rejected(Box::new(error)),
            ServiceError::Timeout { timeout: within } => CallError::TimedOut { within },
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            ServiceError::TransportSend(error) => match self.diagnostics.end_reason() {
                Some(reason) => CallError::Ended(reason),
                None => CallError::NotSent(error.error),
            },
            ServiceError::TransportClosed => {
                CallError::Ended(self.diagnostics.end_reason().unwrap_or(EndReason::Closed))
            }
            _ => CallError::Unexpected,
        }
    }
}

impl From<ProgressNotificationParam> for Progress {
    fn from(notification: ProgressNotificationParam) -> Self {
        Progress {
            done: notification.progress,
            total: notification.total,
            message: notification.message,
        }
    }
}

/// Cancels a pending call when dropped.
struct CancelOnDrop<'a> {
    session: &'a Session,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.session.peer.clone();
        let params = CancelledNotificationParam::new(Some(id), None);
        self.session.cancellations.spawn(async move {
            // Fails if the server has ended; then there is nothing to cancel.
            let _ = peer.notify_cancelled(params).await;
        });
    }
}

/// Explains a failed handshake. If the connection ended, the diagnostics may know why.
fn handshake_failure(
    error: ClientInitializeError,
    diagnostics: &ServerDiagnostics,
) -> ServerFailure {
    let known = diagnostics
        .end_reason()
        .filter(|reason| *reason != EndReason::Closed);
    match (error, known) {
        (ClientInitializeError::LegacyFallbackFailed { fallback, .. }, _) => {
            handshake_failure(*fallback, diagnostics)
        }
        (
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. },
            Some(reason),
        ) => ServerFailure::Ended(reason),
        (ClientInitializeError::TransportError { error, .. }, None) => {
            ServerFailure::Unreachable(error.error)
        }
        (error, _) => ServerFailure::Handshake(Box::new(error)),
    }
}

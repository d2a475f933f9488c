//! An MCP session with one server.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
        ClientCapabilities, ClientConfig, ClientRequest, ErrorCode, Implementation, JsonObject,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResult, RequestId, Resource, ResourceTemplate,
        ServerPeerInfo, ServerResult, Tool,
    },
    service::{ClientInitializeError, NotificationContext, PeerRequestOptions, RunningService},
    transport::Transport,
};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time::timeout,
};
use tokio_util::task::TaskTracker;

use crate::{CallError, EndReason, Limits, ServerDiagnostics, ServerFailure, diagnostics::preview};

/// Timeout for closing a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Progress notifications buffered for a slow receiver; older notifications are dropped.
const PROGRESS_BUFFER: usize = 64;

/// A session with a ready server.
#[derive(Debug)]
pub struct Session {
    peer: Peer<RoleClient>,
    /// Sends the progress of all calls in this session.
    progress: broadcast::Sender<ProgressNotificationParam>,
    /// Taken by `close`. Dropping it ends the session.
    running: Mutex<Option<RunningService<RoleClient, NotificationHandler>>>,
    pub(crate) diagnostics: Arc<ServerDiagnostics>,
    limits: Limits,
    /// Tasks that send cancellation notifications.
    cancellations: TaskTracker,
}

impl Session {
    /// Opens a session. The caller bounds the time.
    pub(crate) async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        diagnostics: Arc<ServerDiagnostics>,
        lifecycle: ClientLifecycleMode,
        limits: &Limits,
    ) -> Result<Self, ServerFailure> {
        let progress = broadcast::Sender::new(PROGRESS_BUFFER);
        let handler = NotificationHandler(progress.clone());
        let served = handler.serve_with_lifecycle(transport, lifecycle).await;
        let running = served.map_err(|error| handshake_failure(error, &diagnostics))?;
        if let Some(info) = running.peer().peer_info()
            && !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version)
        {
            let revision = preview(info.protocol_version.as_str().as_bytes());
            let _ = timeout(CLOSE_TIMEOUT, running.cancel()).await;
            return Err(ServerFailure::Revision { revision });
        }
        Ok(Session {
            peer: running.peer().clone(),
            progress,
            running: Mutex::new(Some(running)),
            diagnostics,
            limits: limits.clone(),
            cancellations: TaskTracker::new(),
        })
    }

    /// Returns the server's self-description.
    #[must_use]
    pub fn peer_info(&self) -> Option<ServerPeerInfo> {
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

    /// Lists all tools, whatever the server's configuration allows.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, CallError> {
        let page = async |cursor| {
            let page = self.peer.list_tools(cursor).await?;
            Ok((page.tools, page.next_cursor))
        };
        let offers = |info: &ServerPeerInfo| info.capabilities.tools.is_some();
        self.list_all(offers, page).await
    }

    /// Lists the resources.
    pub async fn resources(&self) -> Result<Vec<Resource>, CallError> {
        let page = async |cursor| {
            let page = self.peer.list_resources(cursor).await?;
            Ok((page.resources, page.next_cursor))
        };
        self.list_all(offers_resources, page).await
    }

    /// Lists the resource templates.
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        let page = async |cursor| {
            let page = self.peer.list_resource_templates(cursor).await?;
            Ok((page.resource_templates, page.next_cursor))
        };
        self.list_all(offers_resources, page).await
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, CallError> {
        let within = self.limits.tool;
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri));
        let read = timeout(within, read).await;
        let read = read.map_err(|_| CallError::TimedOut { within })?;
        read.map_err(|error| self.call_error(error))
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<ProgressNotificationParam>>,
    ) -> Result<CallToolResult, CallError> {
        let mut notifications = self.progress.subscribe();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(self.limits.tool);
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|error| self.call_error(error))?;
        let token = handle.progress_token.clone();
        let forward = |notification: ProgressNotificationParam| {
            if let Some(progress) = progress.filter(|_| notification.progress_token == token) {
                // A slow receiver misses steps, but never delays the result.
                let _ = progress.try_send(notification);
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

    /// Fetches all pages of a list, if the server offers it. Some servers declare a capability
    /// without implementing all of its lists; an unknown method counts as an empty list.
    async fn list_all<T>(
        &self,
        offers: impl Fn(&ServerPeerInfo) -> bool,
        page: impl AsyncFn(
            Option<PaginatedRequestParams>,
        ) -> Result<(Vec<T>, Option<String>), ServiceError>,
    ) -> Result<Vec<T>, CallError> {
        if !self.peer.peer_info().is_some_and(|info| offers(&info)) {
            return Ok(Vec::new());
        }
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
        let within = self.limits.tool;
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

fn offers_resources(info: &ServerPeerInfo) -> bool {
    info.capabilities.resources.is_some()
}

/// Handles requests and notifications of a server. Declares no client capabilities.
#[derive(Debug)]
struct NotificationHandler(broadcast::Sender<ProgressNotificationParam>);

impl ClientHandler for NotificationHandler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // Fails if no call is in progress.
        let _ = self.0.send(params);
    }

    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("outpost", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), implementation)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
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

/// Explains a failed handshake. If the connection ended, the diagnostics may contain the cause.
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

//! A session with a client, from its first message to the end of its input.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
        Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::{QuitReason, RequestContext, ServerInitializeError, serve_server_with_ct},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{CallContext, ToolError, ToolServer, tools, transport::LineTransport};

/// Errors of a session with a client.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The MCP handshake failed.
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// The task of the session panicked or was aborted.
    #[error("the MCP session ended unexpectedly")]
    Aborted(#[source] tokio::task::JoinError),
}

impl ToolServer {
    /// Serves a client until the end of its input or until `cancel` is cancelled. Pending
    /// calls then have a short time to complete.
    pub async fn serve(
        self: &Arc<Self>,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        cancel: CancellationToken,
    ) -> Result<(), ServeError> {
        let (transport, writer) = LineTransport::new(read, write, self.limits().message_bytes);
        // The SDK reports the end only after all calls have completed, and some would run for
        // ever.
        let input_ended = transport.ended.clone();
        let handler = Handler {
            server: Arc::clone(self),
            tools: tools::TABLE
                .iter()
                .map(|tool| (tool.describe)(tool))
                .collect(),
        };
        let write_drain = self.limits().write_drain;
        let running = match serve_server_with_ct(handler, transport, cancel.clone()).await {
            Ok(running) => running,
            Err(error) => {
                let _ = timeout(write_drain, writer).await;
                return match error {
                    // The client left before the handshake.
                    ServerInitializeError::ConnectionClosed(_)
                    | ServerInitializeError::Cancelled => Ok(()),
                    error => Err(ServeError::Handshake(Box::new(error))),
                };
            }
        };
        let session = running.waiting();
        tokio::pin!(session);
        let input_drained = async {
            input_ended.cancelled().await;
            sleep(self.limits().call_drain).await;
        };
        let quit = tokio::select! {
            quit = &mut session => Some(quit),
            () = cancel.cancelled() => None,
            () = input_drained => None,
        };
        let deadline = Instant::now() + write_drain;
        let quit = match quit {
            Some(quit) => quit,
            None => {
                self.session_ended.cancel();
                match timeout_at(deadline, session).await {
                    Ok(quit) => quit,
                    // A client that doesn't read the last responses is not waited for.
                    Err(_) => return Ok(()),
                }
            }
        };
        let _ = timeout_at(deadline, writer).await;
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Aborted(error)),
            Ok(_) => Ok(()),
        }
    }
}

/// Handles the requests of a client.
struct Handler {
    server: Arc<ToolServer>,
    tools: Vec<Tool>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("outpost", env!("CARGO_PKG_VERSION")).with_title("Outpost"),
            )
            .with_instructions(self.server.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::TABLE.iter().find(|tool| tool.name == request.name) else {
            let message = format!("there is no tool {:?}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let Ok(_permit) = self.server.call_permits.try_acquire() else {
            let calls = self.server.limits().concurrent_calls;
            let response = ToolError::TooManyCalls { calls }.into_response();
            return response.map(Into::into);
        };
        let token = context.meta.get_progress_token();
        let call = CallContext {
            server: &self.server,
            cancelled: context.ct,
            progress: token.map(|token| (context.peer, token)),
        };
        let arguments = request.arguments.unwrap_or_default();
        (tool.call)(tool.name, arguments, &call)
            .await
            .map(Into::into)
    }

    /// Rejects a request with an unknown method, or with invalid params of a known one.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&&*method) {
            return Err(ErrorData::invalid_params(
                format!("invalid params of {method}"),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

/// The supported methods.
const METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/call",
    "tools/list",
];

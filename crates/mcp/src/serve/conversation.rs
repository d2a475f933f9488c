//! A conversation with a client, from its first message to the end of its input.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

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
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{Call, Workbench, tools, wire::Wire};

/// Why a conversation has failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could not be begun.
    #[error("cannot begin to speak MCP")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// The task that speaks has ended by itself.
    #[error("the conversation has broken off")]
    Broken(#[source] tokio::task::JoinError),
}

impl Workbench {
    /// Speaks with a client until its input has ended or somebody cancels `until`.
    /// Calls that are still under way then have a moment to be answered.
    pub async fn serve(
        self: &Arc<Self>,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        until: CancellationToken,
    ) -> Result<(), ServeError> {
        let ended = CancellationToken::new();
        let read = Input {
            read,
            ended: ended.clone(),
        };
        let (transport, writing) = Wire::new(read, write, self.bounds());
        let clerk = Clerk {
            bench: Arc::clone(self),
            tools: tools::TABLE.iter().map(|row| (row.describe)()).collect(),
        };
        let parting = self.bounds().parting;
        let running = match serve_server_with_ct(clerk, transport, until.clone()).await {
            Ok(running) => running,
            Err(error) => {
                let _ = timeout(parting, writing).await;
                return match error {
                    // Who goes before having said anything has changed its mind.
                    ServerInitializeError::ConnectionClosed(_)
                    | ServerInitializeError::Cancelled => Ok(()),
                    error => Err(ServeError::Handshake(Box::new(error))),
                };
            }
        };
        let waiting = running.waiting();
        tokio::pin!(waiting);
        let leaving = async {
            tokio::select! {
                () = until.cancelled() => {}
                () = async {
                    ended.cancelled().await;
                    sleep(self.bounds().farewell).await;
                } => {}
            }
        };
        let (quit, deadline) = tokio::select! {
            quit = &mut waiting => (Ok(quit), Instant::now() + parting),
            () = leaving => {
                self.over.cancel();
                let deadline = Instant::now() + parting;
                (timeout_at(deadline, waiting).await, deadline)
            }
        };
        // Who doesn't read what is said last can't be waited for.
        let Ok(quit) = quit else { return Ok(()) };
        let _ = timeout_at(deadline, writing).await;
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error)),
            Ok(_) => Ok(()),
        }
    }
}

/// What the client speaks with.
struct Clerk {
    bench: Arc<Workbench>,
    tools: Vec<Tool>,
}

impl ServerHandler for Clerk {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("outpost", env!("CARGO_PKG_VERSION")).with_title("Outpost"),
            )
            .with_instructions(self.bench.instructions())
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
        let call = Call {
            progress: context
                .meta
                .get_progress_token()
                .map(|token| (context.peer.clone(), token)),
            off: context.ct,
            over: self.bench.over.clone(),
            every: self.bench.bounds().progress,
        };
        let arguments = request.arguments.unwrap_or_default();
        let performed = self.bench.perform(&request.name, arguments, &call).await;
        match performed {
            Some(result) => result.map(Into::into),
            None => Err(ErrorData::invalid_params(
                format!("there is no tool {:?}", request.name),
                None,
            )),
        }
    }

    /// What the SDK doesn't know, or knows with other params.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match METHODS.contains(&&*method) {
            true => ErrorData::invalid_params(format!("these are no params of {method}"), None),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        })
    }
}

/// What is asked of us, and so known if its params aren't.
const METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/call",
    "tools/list",
];

/// An input that tells when it has ended. Who speaks finishes all calls first, and
/// some would take for ever.
struct Input<R> {
    read: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.read).poll_read(cx, buf);
        let over = match &polled {
            Poll::Ready(Ok(())) => buf.filled().len() == before && buf.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if over {
            this.ended.cancel();
        }
        polled
    }
}

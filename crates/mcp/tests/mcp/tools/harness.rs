//! A tool server with a client over an in-memory pipe, on a local or a remote executor.

use std::sync::Arc;

use outpost_client::{Executor, LocalExecutor, LocalOptions};
use outpost_mcp::serve::{ToolLimits, ToolServer, ToolServerConfig};
use outpost_testkit::ProcStats;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, ContentBlock, Implementation, ProgressNotificationParam, ProtocolVersion,
        ServerResult,
    },
    service::{
        NotificationContext, PeerRequestOptions, RequestHandle, RunningService, ServiceError,
    },
};
use serde_json::Value;
use tokio::{
    io::{DuplexStream, duplex, split},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::executor::TestExecutor;
pub(crate) use outpost_testkit::deadline::expect_soon as soon;

/// A session of a client with a tool server, in its own working directory.
pub(crate) struct TestSession {
    pub(crate) name: &'static str,
    pub(crate) client: RunningService<RoleClient, ProgressListener>,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) progress: tokio::sync::Mutex<mpsc::Receiver<ProgressNotificationParam>>,
    pub(crate) tool_server: Arc<ToolServer>,
    pub(crate) task: JoinHandle<()>,
    pub(crate) cancel: CancellationToken,
    pub(crate) executor: Arc<dyn Executor>,
    /// The server of a remote executor.
    pub(crate) remote: Option<Arc<TestExecutor>>,
}

/// Options of a session.
#[derive(Clone, Default)]
pub(crate) struct TestOptions {
    pub(crate) limits: ToolLimits,
    pub(crate) env: Vec<(&'static str, &'static str)>,
    pub(crate) lifecycle: Option<ClientLifecycleMode>,
    pub(crate) version: Option<ProtocolVersion>,
}

impl TestSession {
    pub(crate) async fn local(options: TestOptions) -> Self {
        let executor = LocalExecutor::new(LocalOptions::default()).expect("a local executor");
        TestSession::start("local", Arc::new(executor), None, options).await
    }

    pub(crate) async fn remote(options: TestOptions) -> Self {
        let remote = TestExecutor::new();
        let executor = remote.connect().await;
        TestSession::start("remote", executor, Some(remote), options).await
    }

    async fn start(
        name: &'static str,
        executor: Arc<dyn Executor>,
        remote: Option<Arc<TestExecutor>>,
        options: TestOptions,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let config = ToolServerConfig {
            cwd: Some(directory.path().display().to_string()),
            env: options
                .env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            limits: options.limits,
            ..ToolServerConfig::default()
        };
        let provider = Arc::new(Arc::clone(&executor));
        let tool_server = ToolServer::new(provider, config).await;
        let tool_server = Arc::new(tool_server.expect("a tool server"));
        let (ours, theirs) = duplex(64 * 1024);
        let cancel = CancellationToken::new();
        let task = tokio::spawn({
            let (tool_server, cancel) = (Arc::clone(&tool_server), cancel.clone());
            async move {
                let (read, write) = split(theirs);
                let served = tool_server.serve(read, write, cancel).await;
                served.expect("no error");
            }
        });
        let (client, progress) = connect_client(ours, options.lifecycle, options.version).await;
        TestSession {
            name,
            client,
            directory,
            progress: tokio::sync::Mutex::new(progress),
            tool_server,
            task,
            cancel,
            executor,
            remote,
        }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create directories");
        std::fs::write(path, content).expect("write the file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("read the file")
    }

    /// Starts a call that can be cancelled.
    pub(crate) async fn begin(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let sent = self.client.send_cancellable_request(request, options).await;
        sent.expect("send the call")
    }

    pub(crate) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let handle = self.begin(tool, arguments).await;
        match soon(tool, handle.await_response()).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            other => panic!("not a tool result: {other:?}"),
        }
    }

    /// Calls a tool that must succeed, and returns its structured content.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let (result, _) = self.call_with_text(tool, arguments).await;
        result
    }

    /// Calls a tool that must succeed, and returns its structured content and text.
    pub(crate) async fn call_with_text(&self, tool: &str, arguments: Value) -> (Value, String) {
        let call = format!("{tool} {arguments}");
        let result = self.try_call(tool, arguments).await.expect("a response");
        let text = text(&result);
        assert_eq!(result.is_error, Some(false), "{call}: {text}");
        (result.structured_content.expect("structured content"), text)
    }

    /// Calls a tool that must fail, and returns its error message.
    pub(crate) async fn call_failing(&self, tool: &str, arguments: Value) -> String {
        let call = format!("{tool} {arguments}");
        let result = self.try_call(tool, arguments).await.expect("a response");
        assert_eq!(result.is_error, Some(true), "{call}: {result:?}");
        text(&result)
    }

    /// Ends the session as a host does.
    pub(crate) async fn end(self) {
        let _ = self.client.cancel().await;
        soon("the end of the session", self.task)
            .await
            .expect("no panic");
        let _ = self.executor.close().await;
        soon("the end of the tool server", self.tool_server.close()).await;
    }
}

/// Runs a test on a local and on a remote executor.
pub(crate) async fn in_each_environment(test: impl AsyncFn(&TestSession)) {
    in_each_environment_with(TestOptions::default(), test).await;
}

pub(crate) async fn in_each_environment_with(
    options: TestOptions,
    test: impl AsyncFn(&TestSession),
) {
    for session in [
        TestSession::local(options.clone()).await,
        TestSession::remote(options.clone()).await,
    ] {
        tracing::info!(session.name, "next environment");
        test(&session).await;
        session.end().await;
    }
}

fn text(result: &CallToolResult) -> String {
    match &result.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

async fn connect_client(
    stream: DuplexStream,
    lifecycle: Option<ClientLifecycleMode>,
    version: Option<ProtocolVersion>,
) -> (
    RunningService<RoleClient, ProgressListener>,
    mpsc::Receiver<ProgressNotificationParam>,
) {
    let (sender, progress) = mpsc::channel(1000);
    let listener = ProgressListener {
        progress: sender,
        version,
    };
    let lifecycle = lifecycle.unwrap_or(ClientLifecycleMode::Initialize);
    let served = listener.serve_with_lifecycle(stream, lifecycle);
    let client = soon("the handshake", served).await.expect("a handshake");
    (client, progress)
}

/// A client that receives progress notifications.
#[derive(Clone)]
pub(crate) struct ProgressListener {
    progress: mpsc::Sender<ProgressNotificationParam>,
    version: Option<ProtocolVersion>,
}

impl ClientHandler for ProgressListener {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(params).await;
    }

    fn get_info(&self) -> ClientConfig {
        let version = self.version.clone();
        let version = version.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("test", "1"),
        )
        .with_protocol_version(version)
    }
}

/// Waits until no process has this pid.
pub(crate) async fn wait_gone(pid: &str) {
    let pid = pid.trim().parse().expect("a pid");
    ProcStats::of(pid).wait_exited().await;
}

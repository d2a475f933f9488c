//! A workbench with a client, over a pipe in memory.

use std::{
    path::Path,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outpost_client::{
    DialError, Dialer, Local, LocalOptions, Place, Remote, RemoteLimits, RemoteOptions, Transport,
};
use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
use outpost_mcp::serve::{Bounds, Ground, Setup, Workbench};
use outpost_server::{Host, Peer, Server, Settings};
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
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// For an event that comes at once unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// A conversation under way. Its folder is where commands start.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) client: RunningService<RoleClient, Ear>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) progress: tokio::sync::Mutex<mpsc::Receiver<ProgressNotificationParam>>,
    pub(crate) workbench: Arc<Workbench>,
    pub(crate) speaking: JoinHandle<()>,
    pub(crate) until: CancellationToken,
    pub(crate) place: Arc<dyn Place>,
    /// Behind which the place is, if it isn't here.
    pub(crate) line: Option<Arc<Line>>,
}

/// How a bench is set up in a test.
#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) bounds: Bounds,
    pub(crate) env: Vec<(&'static str, &'static str)>,
    pub(crate) lifecycle: Option<ClientLifecycleMode>,
    pub(crate) version: Option<ProtocolVersion>,
}

impl Bench {
    pub(crate) async fn here(wanted: Wanted) -> Self {
        let place = Local::new(LocalOptions::default()).expect("a place");
        Bench::on("here", Arc::new(place), None, wanted).await
    }

    pub(crate) async fn there(wanted: Wanted) -> Self {
        let line = Line::new();
        let place = line.place().await;
        Bench::on("there", place, Some(line), wanted).await
    }

    async fn on(
        name: &'static str,
        place: Arc<dyn Place>,
        line: Option<Arc<Line>>,
        wanted: Wanted,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let setup = Setup {
            cwd: Some(folder.path().display().to_string()),
            env: wanted
                .env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            bounds: wanted.bounds,
            ..Setup::default()
        };
        let ground: Arc<dyn Ground> = Arc::new(Arc::clone(&place));
        let workbench = Workbench::new(ground, setup).await.expect("a workbench");
        let workbench = Arc::new(workbench);
        let (ours, theirs) = duplex(64 * 1024);
        let until = CancellationToken::new();
        let speaking = tokio::spawn({
            let (workbench, until) = (Arc::clone(&workbench), until.clone());
            async move {
                let (read, write) = split(theirs);
                let served = workbench.serve(read, write, until).await;
                served.expect("a conversation");
            }
        });
        let (client, progress) = listening(ours, wanted.lifecycle, wanted.version).await;
        Bench {
            name,
            client,
            folder,
            progress: tokio::sync::Mutex::new(progress),
            workbench,
            speaking,
            until,
            place,
            line,
        }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("it can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("it can be read")
    }

    /// Begins a call that can be called off.
    pub(crate) async fn begin(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let sent = self.client.send_cancellable_request(request, options).await;
        sent.expect("it is sent")
    }

    pub(crate) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let handle = self.begin(tool, arguments).await;
        match soon(tool, handle.await_response()).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            other => panic!("no result of a tool: {other:?}"),
        }
    }

    /// Calls a tool that has to do what it is asked for, and gives its members.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let (members, _) = self.call_for_words(tool, arguments).await;
        members
    }

    /// The same, with its words.
    pub(crate) async fn call_for_words(&self, tool: &str, arguments: Value) -> (Value, String) {
        let said = arguments.to_string();
        let result = self.try_call(tool, arguments).await.expect("an answer");
        let words = text(&result);
        assert_eq!(result.is_error, Some(false), "{tool} {said}: {words}");
        (result.structured_content.expect("members"), words)
    }

    /// Calls a tool that has to refuse, and gives its words.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> String {
        let said = arguments.to_string();
        let result = self.try_call(tool, arguments).await.expect("an answer");
        assert_eq!(result.is_error, Some(true), "{tool} {said}: {result:?}");
        text(&result)
    }

    /// Ends the conversation as a host does, and everything with it.
    pub(crate) async fn end(self) {
        let _ = self.client.cancel().await;
        soon("the end of the conversation", self.speaking)
            .await
            .expect("nobody panics");
        let _ = self.place.close().await;
        soon("the end of the bench", self.workbench.close()).await;
    }
}

/// The same in both places.
pub(crate) async fn in_each_place(test: impl AsyncFn(&Bench)) {
    in_each_place_with(Wanted::default(), test).await;
}

pub(crate) async fn in_each_place_with(wanted: Wanted, test: impl AsyncFn(&Bench)) {
    for bench in [
        Bench::here(wanted.clone()).await,
        Bench::there(wanted.clone()).await,
    ] {
        tracing::info!(bench.name, "the next place");
        test(&bench).await;
        bench.end().await;
    }
}

fn text(result: &CallToolResult) -> String {
    match &result.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

async fn listening(
    line: DuplexStream,
    lifecycle: Option<ClientLifecycleMode>,
    version: Option<ProtocolVersion>,
) -> (
    RunningService<RoleClient, Ear>,
    mpsc::Receiver<ProgressNotificationParam>,
) {
    let (told, progress) = mpsc::channel(1000);
    let ear = Ear { told, version };
    let lifecycle = lifecycle.unwrap_or(ClientLifecycleMode::Initialize);
    let served = ear.serve_with_lifecycle(line, lifecycle);
    let client = soon("the handshake", served).await.expect("a handshake");
    (client, progress)
}

/// A client that hears of progress.
#[derive(Clone)]
pub(crate) struct Ear {
    told: mpsc::Sender<ProgressNotificationParam>,
    version: Option<ProtocolVersion>,
}

impl ClientHandler for Ear {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.told.send(params).await;
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

/// A server in this program that can be reached, and be lost.
pub(crate) struct Line {
    server: Server,
    connections: Mutex<Vec<AbortHandle>>,
    lost: AtomicBool,
}

impl Line {
    fn new() -> Arc<Self> {
        let spawner = Spawner::new(SpawnerOptions::default()).expect("a spawner");
        let host = Host::look(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        Arc::new(Line {
            server: Server::new(engine, host, Settings::default()),
            connections: Mutex::default(),
            lost: AtomicBool::new(false),
        })
    }

    async fn place(self: &Arc<Self>) -> Arc<dyn Place> {
        let options = RemoteOptions {
            limits: RemoteLimits {
                recover_within: Duration::from_millis(500),
                ..RemoteLimits::default()
            },
            ..RemoteOptions::default()
        };
        let dialer = Arc::new(Dial(Arc::clone(self)));
        Arc::new(Remote::over(dialer, options).await.expect("it is there"))
    }

    /// Ends every connection, and takes no other.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        for connection in self.connections.lock().expect("nobody panics").drain(..) {
            connection.abort();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.server.kill_all();
    }
}

struct Dial(Arc<Line>);

impl Dialer for Dial {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            if self.0.lost.load(Ordering::Relaxed) {
                let refused = std::io::ErrorKind::ConnectionRefused;
                return Err(DialError::Connect(refused.into()));
            }
            let (ours, theirs) = duplex(64 * 1024);
            let server = self.0.server.clone();
            let connection = tokio::spawn(async move {
                let (read, write) = split(theirs);
                let (read, write) = (Box::new(read), Box::new(write));
                server.serve_websocket(read, write, Peer::Anybody).await;
            });
            let mut connections = self.0.connections.lock().expect("nobody panics");
            connections.push(connection.abort_handle());
            let (read, write) = split(ours);
            Ok(Transport::websocket(Box::new(read), Box::new(write)))
        })
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

/// Waits until a process of this number is gone.
pub(crate) async fn gone(pid: &str) {
    let path = Path::new("/proc").join(pid.trim());
    outpost_testkit::patience::seen("the end of a process", || (!path.exists()).then_some(()))
        .await;
}

//! Where servers are put on for a test: here, or behind a server in memory, and
//! no difference to be seen.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use outpost_client::{
    DialError, Dialer, Local, LocalOptions, Place, Remote, RemoteLimits, RemoteOptions, Transport,
};
use outpost_mcp::{
    CallError, Ensemble, ExecutorLauncher, Launcher, Launchers, Limits, LocalLauncher,
    ServerConfig,
    model::{CallToolResult, ContentBlock},
};
use outpost_server::{Host, Peer, Server, Settings};
use outpost_testkit::mcp::{WAITING, Wiretap};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, ReadBuf, duplex, split},
    task::AbortHandle,
    time::timeout,
};

/// For an event that comes at once unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// A server in this program that can be reached, cut off and given up.
pub(crate) struct Executor {
    server: Server,
    lines: Mutex<Vec<AbortHandle>>,
    unreachable: AtomicBool,
    /// What clients have sent, if somebody wants to know.
    heard: Option<Mutex<Vec<u8>>>,
}

impl Executor {
    pub(crate) fn new() -> Arc<Self> {
        Executor::build(None)
    }

    /// One that speaks in lines, and whose clients are listened to.
    pub(crate) fn tapped() -> Arc<Self> {
        Executor::build(Some(Mutex::default()))
    }

    /// How often clients have said this.
    pub(crate) fn heard(&self, words: &str) -> usize {
        let heard = self.heard.as_ref().expect("it is tapped");
        let heard = heard.lock().expect("nobody panics");
        String::from_utf8_lossy(&heard).matches(words).count()
    }

    fn build(heard: Option<Mutex<Vec<u8>>>) -> Arc<Self> {
        use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
        let spawner = Spawner::new(SpawnerOptions::default()).expect("a spawner");
        let host = Host::look(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        Arc::new(Executor {
            server: Server::new(engine, host, Settings::default()),
            lines: Mutex::default(),
            unreachable: AtomicBool::new(false),
            heard,
        })
    }

    /// Ends every connection without a word.
    pub(crate) fn cut(&self) {
        for line in self.lines.lock().expect("nobody panics").drain(..) {
            line.abort();
        }
    }

    /// And answers no more.
    pub(crate) fn vanish(&self) {
        self.unreachable.store(true, Ordering::Relaxed);
        self.cut();
    }

    pub(crate) async fn place(self: &Arc<Self>) -> Arc<dyn Place> {
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
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.server.kill_all();
    }
}

/// Reads, and remembers what it has read.
struct Tap<R> {
    read: R,
    executor: Arc<Executor>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Tap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.read).poll_read(cx, buf);
        if let Some(heard) = &self.executor.heard {
            let mut heard = heard.lock().expect("nobody panics");
            heard.extend_from_slice(&buf.filled()[before..]);
        }
        polled
    }
}

struct Dial(Arc<Executor>);

impl Dialer for Dial {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            if self.0.unreachable.load(Ordering::Relaxed) {
                return Err(DialError::Connect(
                    std::io::ErrorKind::ConnectionRefused.into(),
                ));
            }
            let (ours, theirs) = duplex(64 * 1024);
            let (read, write) = split(theirs);
            let server = self.0.server.clone();
            let tap = self.0.heard.is_some().then(|| Arc::clone(&self.0));
            let is_tapped = tap.is_some();
            let line = tokio::spawn(async move {
                let write = Box::new(write);
                match tap {
                    None => {
                        let read = Box::new(read);
                        server.serve_websocket(read, write, Peer::Anybody).await;
                    }
                    Some(executor) => {
                        let read = Box::new(Tap { read, executor });
                        server.serve_lines(read, write).await;
                    }
                }
            });
            let mut lines = self.0.lines.lock().expect("nobody panics");
            lines.push(line.abort_handle());
            let (read, write) = split(ours);
            let (read, write) = (Box::new(read), Box::new(write));
            Ok(match is_tapped {
                true => Transport::lines(read, write),
                false => Transport::websocket(read, write),
            })
        })
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

/// Where servers run in a test.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    environment: &'static str,
    pub(crate) launchers: Launchers,
    pub(crate) executor: Arc<Executor>,
}

impl Stage {
    pub(crate) async fn local() -> Self {
        Stage::new("local").await
    }

    pub(crate) async fn remote() -> Self {
        Stage::new("remote").await
    }

    async fn new(environment: &'static str) -> Self {
        let executor = Executor::new();
        let here = Local::new(LocalOptions::default()).expect("a place");
        let remote: Arc<dyn Launcher> = Arc::new(ExecutorLauncher::new(executor.place().await));
        Stage {
            name: environment,
            environment,
            launchers: Launchers {
                local: Arc::new(LocalLauncher::new(Arc::new(here))),
                remote: Some(remote),
            },
            executor,
        }
    }

    /// What starts servers on it.
    pub(crate) fn launcher(&self) -> Arc<dyn Launcher> {
        let launcher = match self.environment {
            "local" => Some(&self.launchers.local),
            _ => self.launchers.remote.as_ref(),
        };
        Arc::clone(launcher.expect("each stage has one"))
    }

    /// A server of this name, alone, with other settings on top.
    pub(crate) fn one(&self, server: &Value, limits: &Limits) -> Ensemble {
        self.many(&[("one", server.clone())], limits)
    }

    pub(crate) fn many(&self, servers: &[(&str, Value)], limits: &Limits) -> Ensemble {
        let servers = servers.iter().map(|(name, server)| {
            let mut server = server.clone();
            let members = server.as_object_mut().expect("a table");
            members
                .entry("environment")
                .or_insert(self.environment.into());
            let config = ServerConfig::read(name, &server).expect("it makes sense");
            ((*name).to_owned(), config)
        });
        Ensemble::start(servers.collect::<BTreeMap<_, _>>(), &self.launchers, limits)
    }
}

/// The same in both places.
pub(crate) async fn on_each_stage(test: impl AsyncFn(&Stage)) {
    for stage in [Stage::local().await, Stage::remote().await] {
        let name = stage.name;
        tracing::info!(name, "the next stage");
        test(&stage).await;
    }
}

/// The server that misbehaves like this.
pub(crate) fn odd(args: &[&str]) -> Value {
    let mut words = vec!["tests/servers/odd.py"];
    words.extend(args);
    let script = std::env::current_dir().expect("a folder");
    json!({"command": "/usr/bin/env", "args": ["python3"], "cwd": script})
        .as_object()
        .map(|server| {
            let mut server = server.clone();
            let args = ["python3"].into_iter().chain(words).collect::<Vec<_>>();
            server.insert("args".to_owned(), json!(args));
            Value::Object(server)
        })
        .expect("a table")
}

fn installed(path: &str) -> PathBuf {
    let folder = std::env::current_dir().expect("a folder");
    let path = folder.join("../../target/mcp-servers").join(path);
    let there = Path::new(&path).exists();
    assert!(
        there,
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path
}

/// A real server on Node.js, which speaks the revisions with a handshake.
pub(crate) fn everything() -> Value {
    let script = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    json!({"command": "node", "args": [installed(script)]})
}

/// A real server on Python, which speaks the newest revision.
pub(crate) fn time() -> Value {
    json!({"command": installed("python/bin/python3"), "args": ["-m", "mcp_server_time"]})
}

/// One on the SDK for Python with something to call off, which speaks the newest revision.
pub(crate) fn waiting() -> Value {
    json!({"command": installed("python/bin/python3"), "args": ["-c", WAITING]})
}

/// The same server, and what it is told is listened to.
pub(crate) fn tapped(server: &Value, tap: &Wiretap) -> Value {
    let word = |word: &Value| word.as_str().expect("a word").to_owned();
    let args = server["args"].as_array().expect("a list");
    let command: Vec<_> = [&server["command"]]
        .into_iter()
        .chain(args)
        .map(word)
        .collect();
    let command = tap.on(&command);
    let mut server = server.clone();
    server["command"] = json!(command[0]);
    server["args"] = json!(command[1..]);
    server
}

/// Calls a tool of the only server.
pub(crate) async fn call(
    ensemble: &Ensemble,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, CallError> {
    let arguments = arguments.as_object().expect("an object").clone();
    soon("an answer", ensemble.call("one", tool, arguments, None)).await
}

/// The first text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text), ..] => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

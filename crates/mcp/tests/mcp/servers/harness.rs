//! The environments of the tests: a local executor, and a remote one in memory.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use outpost_client::{Executor, LocalExecutor, LocalOptions};
use outpost_mcp::{
    CallError, Command, Executors, Limits, ProcessTransport, ServerConfig, ServerPool,
    model::{CallToolResult, ContentBlock},
};
use outpost_testkit::mcp_server::{StdinRecorder, WAITING};
use serde_json::{Value, json};

use crate::executor::TestExecutor;
pub(crate) use outpost_testkit::deadline::expect_soon as soon;

/// Where the servers of a test run.
pub(crate) struct TestEnvironment {
    pub(crate) name: &'static str,
    environment: &'static str,
    pub(crate) executors: Executors,
    pub(crate) executor: Arc<TestExecutor>,
}

impl TestEnvironment {
    pub(crate) async fn local() -> Self {
        TestEnvironment::new("local").await
    }

    pub(crate) async fn remote() -> Self {
        TestEnvironment::new("remote").await
    }

    async fn new(environment: &'static str) -> Self {
        let executor = TestExecutor::new();
        let local = LocalExecutor::new(LocalOptions::default()).expect("a local executor");
        let remote = executor.connect().await;
        TestEnvironment {
            name: environment,
            environment,
            executors: Executors {
                local: Arc::new(Arc::new(local) as Arc<dyn Executor>),
                remote: Some(Arc::new(remote)),
            },
            executor,
        }
    }

    /// Starts a server with a transport.
    pub(crate) async fn launch(&self, command: &Command, limits: &Limits) -> ProcessTransport {
        let provider = match self.environment {
            "local" => &self.executors.local,
            _ => self.executors.remote.as_ref().expect("a remote executor"),
        };
        let executor = provider.executor().await.expect("an executor");
        let launched = ProcessTransport::launch("one", command, &*executor, limits).await;
        launched.expect("a server")
    }

    /// Starts a pool with one server, named `one`.
    pub(crate) fn one(&self, server: &Value, limits: &Limits) -> ServerPool {
        self.many(&[("one", server.clone())], limits)
    }

    pub(crate) fn many(&self, servers: &[(&str, Value)], limits: &Limits) -> ServerPool {
        let servers = servers.iter().map(|(name, server)| {
            let mut server = server.clone();
            let members = server.as_object_mut().expect("a table");
            members
                .entry("environment")
                .or_insert(self.environment.into());
            let config = ServerConfig::parse(name, &server).expect("a valid configuration");
            ((*name).to_owned(), config)
        });
        ServerPool::start(servers.collect::<BTreeMap<_, _>>(), &self.executors, limits)
    }
}

/// Runs a test in both environments.
pub(crate) async fn in_each_environment(test: impl AsyncFn(&TestEnvironment)) {
    for environment in [
        TestEnvironment::local().await,
        TestEnvironment::remote().await,
    ] {
        tracing::info!(name = environment.name, "next environment");
        test(&environment).await;
    }
}

/// Configures `misbehaving.py` with a mode.
pub(crate) fn misbehaving(mode: &[&str]) -> Value {
    let args = [&["python3", "tests/mcp/servers/misbehaving.py"], mode].concat();
    let cwd = std::env::current_dir().expect("a working directory");
    json!({"command": "/usr/bin/env", "args": args, "cwd": cwd})
}

fn installed(path: &str) -> PathBuf {
    let cwd = std::env::current_dir().expect("a working directory");
    let path = cwd.join("../../target/mcp-servers").join(path);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path
}

/// Configures the reference server on Node.js, which uses `initialize`.
pub(crate) fn everything() -> Value {
    let script = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    json!({"command": "node", "args": [installed(script)]})
}

/// Configures the time server on Python, which uses MCP 2026-07-28.
pub(crate) fn time() -> Value {
    json!({"command": installed("python/bin/python3"), "args": ["-m", "mcp_server_time"]})
}

/// Configures a server on the Python SDK with a tool to cancel, which uses MCP 2026-07-28.
pub(crate) fn waiting() -> Value {
    json!({"command": installed("python/bin/python3"), "args": ["-c", WAITING]})
}

/// Records the messages that a server receives.
pub(crate) fn recorded(server: &Value, recorder: &StdinRecorder) -> Value {
    let string = |value: &Value| value.as_str().expect("a string").to_owned();
    let args = server["args"].as_array().expect("a list");
    let command: Vec<_> = [&server["command"]]
        .into_iter()
        .chain(args)
        .map(string)
        .collect();
    let command = recorder.wrap(&command);
    let mut server = server.clone();
    server["command"] = json!(command[0]);
    server["args"] = json!(command[1..]);
    server
}

/// Calls a tool of the server `one`.
pub(crate) async fn call(
    pool: &ServerPool,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, CallError> {
    let arguments = arguments.as_object().expect("an object").clone();
    soon("a response", pool.call("one", tool, arguments, None)).await
}

/// Returns the first text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text), ..] => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

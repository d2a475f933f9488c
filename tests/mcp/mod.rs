//! Tests MCP servers through the built program: real ones, local and remote.

mod call;
mod cancelling;
mod cuts;
mod endings;
mod errors;
mod list;
mod proxy;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use outpost_testkit::mcp_server::WAITING;
use outpost_testkit::{TestTag, deadline};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::outpost;

fn installed(path: &str) -> String {
    let dir = std::env::current_dir().expect("a directory");
    let path: PathBuf = dir.join("../../target/mcp-servers").join(path);
    assert!(
        Path::new(&path).exists(),
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// A real server on Node.js, which speaks the revisions with a handshake.
fn everything() -> Vec<String> {
    let script = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    vec!["node".to_owned(), installed(script)]
}

/// A real server on Python, which also speaks the newest revision.
pub(crate) fn time() -> Vec<String> {
    ["python/bin/python3"]
        .map(installed)
        .into_iter()
        .chain(["-m", "mcp_server_time"].map(str::to_owned))
        .collect()
}

/// A server on the Python SDK with a tool that can be cancelled.
fn waiting() -> Vec<String> {
    let python = installed("python/bin/python3");
    vec![python, "-c".to_owned(), WAITING.to_owned()]
}

/// A configuration file with MCP servers.
struct McpConfig {
    dir: tempfile::TempDir,
    tag: TestTag,
}

impl McpConfig {
    /// Writes the file from names, commands and further settings. The servers carry a tag.
    fn with(servers: &[(&str, &[String], &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let tag = TestTag::new();
        let mut text = String::new();
        for (name, command, more) in servers {
            text.push_str(&format!(
                "[mcp_servers.{name}]\ncommand = {:?}\nargs = {:?}\nenv = {{ {} = {:?} }}\n{more}\n",
                command[0],
                &command[1..],
                TestTag::VARIABLE,
                tag.as_str(),
            ));
        }
        std::fs::write(dir.path().join("o.toml"), text).expect("a file");
        McpConfig { dir, tag }
    }

    /// Runs the program with these arguments and checks that no process is left.
    async fn run(&self, args: &[&str]) -> Output {
        let child = self.command(args).spawn().expect("spawn");
        let output = child.wait_with_output();
        let output = deadline::expect_soon("the exit of the program", output).await;
        self.tag.gone().await;
        output.expect("wait")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(outpost().binary());
        command
            .args(args)
            .env("OUTPOST_CONFIG", self.dir.path().join("o.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// An MCP host that uses the proxy, with a protocol implementation of its own.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    tag: TestTag,
    ids: u64,
}

impl Host {
    /// Starts the proxy with these arguments before the `--`.
    fn start(args: &[&str], command: &[String]) -> Self {
        let tag = TestTag::new();
        let variable = format!("{}={}", TestTag::VARIABLE, tag.as_str());
        let mut program = Command::new(outpost().binary());
        program
            .args(["mcp", "proxy", "-e", &variable])
            .args(args)
            .arg("--")
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = program.spawn().expect("spawn");
        Host {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("piped")).lines(),
            child,
            tag,
            ids: 0,
        }
    }

    async fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("not closed");
        let line = format!("{message}\n");
        stdin.write_all(line.as_bytes()).await.expect("written");
    }

    /// Returns the next message, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        deadline::expect_soon("a message", self.read()).await
    }

    async fn read(&mut self) -> Option<Value> {
        let line = self.stdout.next_line().await.expect("a line")?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}")))
    }

    async fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        let id = self.ids;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await;
        id
    }

    /// Returns the response and the messages before it.
    async fn wait_response(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await.expect("a response");
            if message["id"] == json!(id) && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params).await;
        self.wait_response(id).await.0
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments}))
            .await["result"]
            .clone()
    }

    async fn handshake(&mut self) {
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        });
        let id = self.send_request("initialize", hello).await;
        let first = deadline::expect_interpreter("the first message", self.read()).await;
        let response = first.expect("a response");
        assert_eq!(response["id"], json!(id), "{response}");
        assert_eq!(response["result"]["protocolVersion"], "2025-06-18");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    /// Closes the input and waits until all processes have ended.
    async fn close(mut self) -> Output {
        self.stdin = None;
        self.finish().await
    }

    /// Closes the input and waits for the exit of the proxy before stderr is read.
    async fn close_unread(mut self) -> Output {
        self.stdin = None;
        let exit = deadline::expect_soon("the end of the proxy", self.child.wait()).await;
        exit.expect("wait");
        self.finish().await
    }

    async fn finish(self) -> Output {
        let Host {
            child,
            stdin,
            stdout: _stdout,
            tag,
            ..
        } = self;
        let output = deadline::expect_soon("the end of the proxy", child.wait_with_output()).await;
        drop(stdin);
        tag.gone().await;
        output.expect("wait")
    }
}

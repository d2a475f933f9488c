//! MCP servers through the built program: real ones, here and on a server.

mod call;
mod cancelling;
mod cuts;
mod endings;
mod list;
mod proxy;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use outpost_testkit::mcp::WAITING;
use outpost_testkit::{Mark, patience};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::outpost;

fn installed(path: &str) -> String {
    let folder = std::env::current_dir().expect("a folder");
    let path: PathBuf = folder.join("../../target/mcp-servers").join(path);
    assert!(
        Path::new(&path).exists(),
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// A real server on Node.js, which speaks the revisions with a handshake.
fn everything() -> Vec<String> {
    let script = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    vec!["node".to_owned(), installed(script)]
}

/// A real server on Python, which speaks the newest revision too.
fn time() -> Vec<String> {
    ["python/bin/python3"]
        .map(installed)
        .into_iter()
        .chain(["-m", "mcp_server_time"].map(str::to_owned))
        .collect()
}

/// One on the SDK for Python, with something to call off.
fn waiting() -> Vec<String> {
    let python = installed("python/bin/python3");
    vec![python, "-c".to_owned(), WAITING.to_owned()]
}

/// A file that configures these servers.
struct Configured {
    folder: tempfile::TempDir,
    mark: Mark,
}

impl Configured {
    /// Each by its name, its command and what else is said of it. What is
    /// started carries a mark.
    fn with(servers: &[(&str, &[String], &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = Mark::new();
        let mut text = String::new();
        for (name, command, more) in servers {
            text.push_str(&format!(
                "[mcp_servers.{name}]\ncommand = {:?}\nargs = {:?}\nenv = {{ {} = {:?} }}\n{more}\n",
                command[0],
                &command[1..],
                Mark::VARIABLE,
                mark.as_str(),
            ));
        }
        std::fs::write(folder.path().join("o.toml"), text).expect("a file");
        Configured { folder, mark }
    }

    /// Runs the program with these arguments, and sees that nothing is left.
    async fn run(&self, args: &[&str]) -> Output {
        let child = self.command(args).spawn().expect("it starts");
        let ended = child.wait_with_output();
        let output = patience::soon("the end of the program", ended).await;
        self.mark.gone().await;
        output.expect("it can be waited for")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(outpost().binary());
        command
            .args(args)
            .env("OUTPOST_CONFIG", self.folder.path().join("o.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// An MCP host that was pointed at the proxy. It speaks the protocol by itself.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    mark: Mark,
    ids: u64,
}

impl Host {
    /// Starts the proxy with these arguments before the `--`.
    fn start(args: &[&str], command: &[String]) -> Self {
        let mark = Mark::new();
        let variable = format!("{}={}", Mark::VARIABLE, mark.as_str());
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
        let mut child = program.spawn().expect("it starts");
        Host {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("asked for")).lines(),
            child,
            mark,
            ids: 0,
        }
    }

    async fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("not closed");
        let line = format!("{message}\n");
        stdin.write_all(line.as_bytes()).await.expect("it is taken");
    }

    /// The next message, whatever it is; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = patience::soon("a message", self.stdout.next_line()).await;
        let line = line.expect("a line")?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}")))
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        let id = self.ids;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await;
        id
    }

    /// The answer, with what came before it.
    async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await.expect("an answer");
            if message["id"] == json!(id) && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await.0
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments}))
            .await["result"]
            .clone()
    }

    async fn shake_hands(&mut self) {
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        });
        let welcome = self.call("initialize", hello).await;
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    /// Ends the input, and waits for the end of everything.
    async fn close(mut self) -> Output {
        self.stdin = None;
        self.ended().await
    }

    async fn ended(self) -> Output {
        let Host {
            child,
            stdin,
            stdout: _stdout,
            mark,
            ..
        } = self;
        let output = patience::soon("the end of the proxy", child.wait_with_output()).await;
        drop(stdin);
        mark.gone().await;
        output.expect("it can be waited for")
    }
}

//! Tests that text of others can't control the terminal: every command on a terminal, against
//! servers, MCP servers and file names with escape sequences and bidirectional marks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use outpost_testkit::frames::{self, Message};
use outpost_testkit::{Client, ScriptedServer, sh};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// Sets the title, clears the screen in two ways, reverses and hides text, and begins a line that
/// looks like ours.
const HOSTILE: &str = "<\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{200b}\u{e0041}\u{85}\
                       \r\nforged: line>";
/// A part of [`HOSTILE`] that stays as it is.
const MARK: &str = "owned";
/// Of `outpost mcp call`, to replace its progress line.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// Returns whether a terminal acts on a character, or doesn't show it.
fn is_hidden(c: char) -> bool {
    let marks = "\u{202e}\u{2066}\u{200b}\u{e0041}\u{2028}";
    c.is_control() || marks.contains(c)
}

/// Runs commands on a terminal.
struct Terminal {
    client: Client,
    dir: tempfile::TempDir,
    count: u32,
    failures: Vec<String>,
}

impl Terminal {
    async fn new() -> (outpost_testkit::Server, Self) {
        let (server, client) = ready().await;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("o.toml"), "").unwrap();
        let terminal = Terminal {
            client,
            dir,
            count: 0,
            failures: Vec::new(),
        };
        (server, terminal)
    }

    /// Runs a shell line with the program as `$OUTPOST`, and returns what the terminal got.
    async fn run(&mut self, line: &str) -> String {
        self.count += 1;
        let id = self.count.to_string();
        let binary = outpost();
        let binary = binary.binary().to_str().expect("UTF-8").to_owned();
        let config = self.dir.path().join("o.toml");
        // A variable of ours would not reach the process.
        let line = format!("export OUTPOST_CONFIG=\"$CONFIG\"; {line}");
        let start = sh(&id, &line)
            .tty()
            .env(&[
                ("OUTPOST", &binary),
                ("PATH", &std::env::var("PATH").expect("UTF-8")),
                ("NO_COLOR", "1"),
                ("HOSTILE", &json!(HOSTILE).to_string()),
                ("CONFIG", config.to_str().expect("UTF-8")),
                ("XDG_STATE_HOME", self.dir.path().to_str().expect("UTF-8")),
            ])
            .with("size", json!({"rows": 30, "cols": 2000}));
        self.client.run(start).await.text()
    }

    /// Checks that a command shows the text on one line, and shows it harmlessly.
    async fn check(&mut self, line: &str) {
        let shown = self.check_lines(line).await;
        if shown.lines().any(|line| line.starts_with("forged")) {
            self.failures
                .push(format!("forged line: {line}: {shown:?}"));
        }
    }

    /// Checks that a command shows the text harmlessly.
    async fn check_lines(&mut self, line: &str) -> String {
        let shown = self.run(line).await;
        let shown = shown.replace(CLEAR_LINE, "").replace("\r\n", "\n");
        if shown.replace('\n', "").contains(is_hidden) {
            self.failures
                .push(format!("not visible: {line}: {shown:?}"));
        }
        if !shown.contains(MARK) {
            self.failures.push(format!("not shown: {line}: {shown:?}"));
        }
        shown
    }

    fn finish(self) {
        assert!(self.failures.is_empty(), "{:#?}", self.failures);
    }
}

fn result(request: &Value, result: Value) -> Message {
    frames::text(&json!({"id": request["id"], "result": result}).to_string())
}

fn rejected(request: &Value, data: Value) -> Message {
    let error = json!({"code": -32603, "message": HOSTILE, "data": data});
    frames::text(&json!({"id": request["id"], "error": error}).to_string())
}

fn initialized(request: &Value) -> Message {
    let info = json!({
        "shell": {"name": HOSTILE, "path": HOSTILE}, "cwd": format!("file:///{HOSTILE}"),
    });
    let capabilities = json!({
        "processList": true, "sessionList": true, "takeover": true, "closeStdin": true,
        "signals": true, "timeouts": true, "terminateTree": true, "resize": true,
        "processNetwork": true,
    });
    let answer = json!({
        "sessionId": "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f", "userAgent": HOSTILE,
        "serverInfo": {"name": HOSTILE, "version": HOSTILE}, "environmentInfo": info,
        "capabilities": capabilities,
    });
    result(request, answer)
}

/// A server that rejects everything.
fn rejecting(request: &Value) -> Vec<Message> {
    vec![rejected(request, Value::Null)]
}

/// A server that rejects everything after the handshake.
fn failing(request: &Value) -> Vec<Message> {
    match request["method"].as_str() {
        _ if request["id"].is_null() => Vec::new(),
        Some("initialize") => vec![initialized(request)],
        Some("process/start") => {
            let data = json!({"kind": "programNotFound", "errno": 2});
            vec![rejected(request, data)]
        }
        _ => vec![rejected(request, json!({"kind": HOSTILE}))],
    }
}

/// A server with hostile names.
fn naming(request: &Value) -> Vec<Message> {
    let id = format!("p{HOSTILE}");
    let process = json!({
        "processId": id, "pid": 1, "argv": ["sh", HOSTILE], "cwd": "file:///", "tty": false,
        "startedAtMs": 0, "state": "closed", "exitCode": 3, "nextSeq": 3, "bytesOut": 0,
    });
    let session = |label: &str| {
        json!({
            "sessionId": label, "label": label, "attached": true, "createdAtMs": 0,
            "expiresAtMs": null, "processes": [process],
        })
    };
    let answer = match request["method"].as_str() {
        _ if request["id"].is_null() => return Vec::new(),
        Some("initialize") => return vec![initialized(request)],
        Some("session/list") => json!({"sessions": [session(&format!("$ {HOSTILE}"))]}),
        Some("process/list") => json!({"processes": [process]}),
        Some("process/network") => {
            let decision = json!({
                "timestamp": HOSTILE, "scope": "domain", "decision": "deny", "source": "decider",
                "reason": HOSTILE, "protocol": "http", "host": HOSTILE, "port": 80,
                "policyOverride": false, "sentBytes": 0, "receivedBytes": 0,
            });
            json!({
                "decisions": [decision], "decisionCount": 3, "droppedDecisions": 1,
                "lostDecisions": 1, "bytes": 0,
            })
        }
        Some("fs/getMetadata") => json!({
            "isDirectory": true, "isFile": false, "isSymlink": false, "size": 0,
            "createdAtMs": 0, "modifiedAtMs": 0,
        }),
        Some("fs/readDirectory") => json!({"entries": [
            {"fileName": HOSTILE, "isDirectory": false, "isFile": true},
        ]}),
        _ => return vec![rejected(request, Value::Null)],
    };
    vec![result(request, answer)]
}

#[tokio::test]
async fn errors_of_servers_are_made_visible() {
    let (_server, mut terminal) = Terminal::new().await;
    let dir = terminal.dir.path().display().to_string();
    fs::write(
        Path::new(&dir).join("o.toml"),
        mcp_config("true", "remote", ""),
    )
    .unwrap();
    for respond in [rejecting, failing] {
        let server = ScriptedServer::start(respond);
        let on = format!("--on {}", server.url());
        for command in [
            &format!("$OUTPOST run {on} -- nosuch"),
            &format!("$OUTPOST run -d {on} -- nosuch"),
            &format!("$OUTPOST run -t {on} -- nosuch"),
            &format!("$OUTPOST ls -l {on} /x"),
            &format!("$OUTPOST cat {on} /x"),
            &format!("$OUTPOST cp {on} :/x {dir}/made"),
            &format!("$OUTPOST cp -q {on} /etc/passwd :/x"),
            &format!("$OUTPOST ps {on}"),
            &format!("$OUTPOST ps --json {on}"),
            &format!("$OUTPOST ps --net s/p {on}"),
            &format!("$OUTPOST logs {on} p"),
            &format!("$OUTPOST logs -f {on} s/p"),
            &format!("$OUTPOST attach {on} p"),
            &format!("$OUTPOST attach {on} s/p"),
            &format!("$OUTPOST kill {on} p"),
            &format!("$OUTPOST kill -INT {on} s/p"),
            &format!("$OUTPOST mcp proxy {on} -- nosuch"),
            &format!("$OUTPOST mcp serve --sandbox :workspace {on}"),
            &format!("$OUTPOST mcp list {on}"),
            &format!("$OUTPOST mcp list -v --json {on}"),
            &format!("$OUTPOST mcp call -v {on} hostile text"),
        ] {
            terminal.check(command).await;
        }
    }
    terminal.finish();
}

#[tokio::test]
async fn names_of_servers_are_made_visible() {
    let (_server, mut terminal) = Terminal::new().await;
    let dir = terminal.dir.path().display().to_string();
    let server = ScriptedServer::start(naming);
    let on = format!("--on {}", server.url());
    for command in [
        &format!("$OUTPOST ps {on}"),
        &format!("$OUTPOST ps --all --json {on}"),
        &format!("$OUTPOST ps --net p {on}"),
        &format!("$OUTPOST ps --net p --json {on}"),
        &format!("$OUTPOST ls {on} /x"),
        &format!("$OUTPOST ls -l {on} /x"),
        &format!("$OUTPOST ls --json {on} /x"),
        &format!("$OUTPOST cp -r {on} :/x {dir}/below/copy"),
        &format!("$OUTPOST attach {on} p"),
        &format!("$OUTPOST kill {on} p"),
        &format!("$OUTPOST kill -INT {on} p"),
        &format!("$OUTPOST logs {on} p"),
    ] {
        terminal.check(command).await;
    }
    // Programs get names as they are.
    let listed = terminal
        .run(&format!("$OUTPOST ls {on} /x | od -An -c"))
        .await;
    assert!(listed.contains("033   ]   0   ;"), "{listed}");
    terminal.finish();
}

#[tokio::test]
async fn local_names_are_made_visible() {
    let (_server, mut terminal) = Terminal::new().await;
    let dir = terminal.dir.path().join(HOSTILE);
    fs::create_dir(&dir).unwrap();
    let inside = format!("cd {}/*owned*;", terminal.dir.path().display());
    symlink("loop", dir.join("loop")).unwrap();
    fs::write(dir.join("o.toml"), format!("listen = {}", json!(HOSTILE))).unwrap();
    for command in [
        // A shell expands a pattern to names, which may look like options.
        "$OUTPOST ls --$PWD",
        "$OUTPOST kill -s $PWD x",
        "$OUTPOST $PWD",
        "$OUTPOST ls $PWD/..",
        "$OUTPOST ls -l $PWD/..",
        "$OUTPOST cat $PWD",
        "$OUTPOST cp -r $PWD/nosuch /tmp",
        "$OUTPOST run --cwd $PWD/nosuch -- true",
        "$OUTPOST run -- $PWD/nosuch",
        "$OUTPOST run --on unix://$PWD/s -- true",
        "$OUTPOST sandbox --explain",
        "$OUTPOST sandbox --explain --json",
        "$OUTPOST sandbox --cwd $PWD/nosuch -- true",
        "$OUTPOST sandbox --write $PWD/loop -- true",
        "$OUTPOST sandbox --profile \"$PWD\" -- true",
        "$OUTPOST config show --config $PWD/o.toml",
        "$OUTPOST config show --config $PWD/nosuch",
        "OUTPOST_CONFIG=$PWD/nosuch $OUTPOST config path",
        "$OUTPOST serve --config $PWD/o.toml",
        "$OUTPOST serve --listen unix://$PWD",
        "$OUTPOST mcp list --config $PWD/nosuch",
        "$OUTPOST mcp proxy -- $PWD/nosuch",
        "XDG_RUNTIME_DIR=$PWD/o.toml $OUTPOST ps",
        "XDG_RUNTIME_DIR=$PWD/nosuch $OUTPOST run -d true",
    ] {
        let command = command.replace("$PWD", "\"$PWD\"").replace("\"\"", "\"");
        terminal.check(&format!("{inside} {command}")).await;
    }
    terminal.finish();
}

/// A configuration with a server called `hostile`.
fn mcp_config(script: &str, environment: &str, mode: &str) -> String {
    format!(
        "[mcp_servers.hostile]\ncommand = \"python3\"\nargs = [{script:?}]\n\
         environment = {environment:?}\nenv_vars = [\"HOSTILE\"]\nenv = {{ MODE = {mode:?} }}\n"
    )
}

#[tokio::test]
async fn texts_of_mcp_servers_are_made_visible() {
    let (_server, mut terminal) = Terminal::new().await;
    let script = terminal.dir.path().join("hostile_mcp.py");
    fs::write(&script, include_str!("hostile_mcp.py")).unwrap();
    let script = script.to_str().unwrap().to_owned();
    let config = terminal.dir.path().join("o.toml");
    for mode in ["reject", "version"] {
        fs::write(&config, mcp_config(&script, "local", mode)).unwrap();
        terminal.check("$OUTPOST mcp list").await;
        terminal.check("$OUTPOST mcp call hostile text").await;
    }
    fs::write(&config, mcp_config(&script, "local", "")).unwrap();
    for command in [
        "$OUTPOST mcp list -v",
        "$OUTPOST mcp list --json",
        "$OUTPOST mcp call --json hostile text",
        "$OUTPOST mcp call hostile reject",
        "$OUTPOST mcp call hostile exit",
    ] {
        terminal.check(command).await;
    }
    // The text of a tool has lines, and so has what the server writes to stderr.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18"}});
    for command in [
        "$OUTPOST mcp call hostile text",
        "$OUTPOST mcp call hostile fail",
        &format!("echo '{initialize}' | $OUTPOST mcp proxy -- python3 {script}"),
    ] {
        terminal.check_lines(command).await;
    }
    // Programs get the text as it is.
    let called = terminal
        .run("$OUTPOST mcp call hostile text 2>&- | od -An -c")
        .await;
    assert!(called.contains("033   ]   0   ;"), "{called}");
    terminal.finish();
}

//! Tests errors of the `outpost mcp` commands: exit codes and messages.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Stdio};

use outpost_testkit::deadline;
use tokio::{net::TcpListener, process::Command};

use super::{McpConfig, text};
use crate::outpost;

#[tokio::test]
async fn remote_server_without_executor_is_an_error() {
    let command = ["cat".to_owned()];
    for (more, code) in [
        ("environment = \"remote\"", 1),
        ("environment = \"remote\"\nenabled = false", 0),
        ("startup_timeout_sec = 0.1", 0),
    ] {
        let config = McpConfig::with(&[("one", &command, more)]);
        let listed = config.run(&["mcp", "list"]).await;
        assert_eq!(listed.status.code(), Some(code), "{more}: {listed:?}");
        let reported = text(&listed.stdout).contains("MCP server one has environment = \"remote\"");
        assert_eq!(reported, code == 1, "{listed:?}");
    }
}

#[tokio::test]
async fn silent_executor_is_unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let command = ["cat".to_owned()];
    let more = "environment = \"remote\"\nstartup_timeout_sec = 0.5";
    let config = McpConfig::with(&[("one", &command, more)]);
    let on = format!("ws://{address}");
    let called = config.run(&["mcp", "call", "one", "x", "--on", &on]).await;
    assert_eq!(called.status.code(), Some(255), "{called:?}");
    let message = text(&called.stderr);
    assert!(message.contains("reaching the executor took"), "{message}");
}

#[tokio::test]
async fn invalid_utf8_argument_is_named_and_not_shown() {
    let broken = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    for (subcommand, flag, value, message) in [
        (
            "proxy",
            "-e",
            broken(b"KEY=secret\xff"),
            "variable KEY is not Unicode text",
        ),
        (
            "serve",
            "-e",
            broken(b"KEY=secret\xff"),
            "variable KEY is not Unicode text",
        ),
        (
            "proxy",
            "--cwd",
            broken(b"/secret\xff"),
            "the value of --cwd is not Unicode text",
        ),
        (
            "serve",
            "--cwd",
            broken(b"/secret\xff"),
            "the value of --cwd is not Unicode text",
        ),
    ] {
        let mut command = Command::new(outpost().binary());
        command.args(["mcp", subcommand]).arg(flag).arg(value);
        if subcommand == "proxy" {
            command.args(["--", "cat"]);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = deadline::expect_soon("its exit", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let printed = text(&output.stderr);
        assert!(
            printed.contains(message) && !printed.contains("secret"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn invalid_utf8_variable_is_named() {
    let server = outpost().start().await;
    let on = server.urls()[0].as_str();
    let value = OsStr::from_bytes(b"secret\xff");
    for args in [
        &["run", "--on", on, "-e", "ODD_KEY", "--", "true"][..],
        &["run", "--detach", "--on", on, "-e", "ODD_KEY", "true"],
        &["mcp", "serve", "-e", "ODD_KEY"],
        &["mcp", "serve", "--on", on, "-e", "ODD_KEY"],
        &["mcp", "proxy", "--on", on, "-e", "ODD_KEY", "--", "cat"],
    ] {
        let mut command = Command::new(outpost().binary());
        command.args(args).env("ODD_KEY", value);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = deadline::expect_soon("its exit", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert_eq!(
            text(&output.stderr),
            "outpost: cannot pass variable ODD_KEY: its value is not Unicode text; \
             leave out -e ODD_KEY, or give it a value with -e ODD_KEY=VALUE\n",
            "{args:?}"
        );
    }
}

#[tokio::test]
async fn invalid_utf8_variable_is_passed_to_a_local_server() {
    let script = "printf '{\"odd\":%s}\\n' \"$(printf %s \"$ODD_KEY\" | wc -c)\"";
    for args in [&["run"][..], &["mcp", "proxy"]] {
        let mut command = Command::new(outpost().binary());
        command.args(args).args(["-e", "ODD_KEY", "--", "sh", "-c"]);
        command.arg(script);
        command.env("ODD_KEY", OsStr::from_bytes(b"odd\xff"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = deadline::expect_soon("its exit", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(text(&output.stdout).contains("{\"odd\":4}"), "{output:?}");
    }
}

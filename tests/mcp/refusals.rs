//! What can't be done, told by the exit code and by name.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Stdio};

use outpost_testkit::patience;
use tokio::{net::TcpListener, process::Command};

use super::{Configured, text};
use crate::outpost;

#[tokio::test]
async fn a_server_with_nowhere_to_run_is_a_mistake() {
    let command = ["cat".to_owned()];
    for (more, code) in [
        ("environment = \"remote\"", 1),
        ("environment = \"remote\"\nenabled = false", 0),
        ("startup_timeout_sec = 0.1", 0),
    ] {
        let configured = Configured::with(&[("one", &command, more)]);
        let listed = configured.run(&["mcp", "list"]).await;
        assert_eq!(listed.status.code(), Some(code), "{more}: {listed:?}");
        let told = text(&listed.stdout).contains("MCP server one is to run remotely");
        assert_eq!(told, code == 1, "{listed:?}");
    }
}

#[tokio::test]
async fn an_executor_that_says_nothing_is_out_of_reach() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let command = ["cat".to_owned()];
    let more = "environment = \"remote\"\nstartup_timeout_sec = 0.5";
    let configured = Configured::with(&[("one", &command, more)]);
    let on = format!("ws://{address}");
    let called = configured
        .run(&["mcp", "call", "one", "x", "--on", &on])
        .await;
    assert_eq!(called.status.code(), Some(255), "{called:?}");
    let words = text(&called.stderr);
    assert!(words.contains("reaching the executor took"), "{words}");
}

#[tokio::test]
async fn what_is_no_text_is_named_and_not_shown() {
    let broken = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    for (subcommand, flag, value, words) in [
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
        let output = patience::soon("its end", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words) && !said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn a_variable_that_is_no_text_here_is_named() {
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
        let output = patience::soon("its end", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert_eq!(
            text(&output.stderr),
            "outpost: variable ODD_KEY is not Unicode text, which alone can be handed on; \
             leave out -e ODD_KEY, or give it a value with -e ODD_KEY=VALUE\n",
            "{args:?}"
        );
    }
}

#[tokio::test]
async fn a_variable_that_is_no_text_is_handed_on_to_what_runs_here() {
    let script = "printf '{\"odd\":%s}\\n' \"$(printf %s \"$ODD_KEY\" | wc -c)\"";
    for args in [&["run"][..], &["mcp", "proxy"]] {
        let mut command = Command::new(outpost().binary());
        command.args(args).args(["-e", "ODD_KEY", "--", "sh", "-c"]);
        command.arg(script);
        command.env("ODD_KEY", OsStr::from_bytes(b"odd\xff"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = patience::soon("its end", command.output())
            .await
            .expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(text(&output.stdout).contains("{\"odd\":4}"), "{output:?}");
    }
}

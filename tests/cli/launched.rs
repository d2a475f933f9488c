//! Tests `--on stdio:`, a server launched for one command.

use outpost_testkit::{Client, Server, Start, sh};
use serde_json::json;

use super::{outcome, text};
use crate::{outpost, ready};

/// Starts a shell on a terminal. `$OUTPOST` is the program under test, `$SERVE` the command that
/// launches it as a server.
async fn shell(script: &str) -> (Server, Client) {
    let (server, client) = ready().await;
    let binary = outpost();
    let binary = binary.binary().to_str().expect("UTF-8").to_owned();
    let serve = format!("{binary} serve --listen stdio:// --log-level off");
    let start: Start = sh("p", script)
        .tty()
        .env(&[("OUTPOST", &binary), ("SERVE", &serve)])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    (server, client)
}

#[tokio::test]
async fn ctrl_c_reaches_the_command_and_not_its_server() {
    for (launched, key, signal) in [
        ("$SERVE", b"\x03", "INT"),
        ("$SERVE", b"\x1c", "QUIT"),
        ("cd / && $SERVE", b"\x03", "INT"),
    ] {
        let (_server, client) = shell(&format!(
            "trap : INT QUIT; $OUTPOST run --on \"stdio:{launched}\" -- sh -c \
             'trap \"echo caught; exit 6\" {signal}; echo ready; while :; do sleep 0.02; done'; \
             echo code $?",
        ))
        .await;
        client.wait_output("p", "ready").await;
        client.write("p", key, "w").await;
        let text = client.closed("p").await.text();
        assert!(text.contains("caught"), "{launched} {signal}: {text}");
        assert!(text.ends_with("code 6\r\n"), "{launched} {signal}: {text}");
    }
}

#[tokio::test]
async fn launched_server_can_use_the_terminal() {
    let (_server, client) = shell(
        "$OUTPOST run --on \"stdio:read -r word </dev/tty; echo got \\$word >&2; $SERVE\" -- \
         echo done; echo code $?",
    )
    .await;
    client.write("p", "secret\n", "w").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("got secret"), "{text}");
    assert!(text.ends_with("done\r\ncode 0\r\n"), "{text}");
}

#[tokio::test]
async fn launched_server_logs_warnings_only() {
    let binary = outpost();
    let binary = binary.binary().to_str().expect("UTF-8").to_owned();
    for (flags, logs) in [("", false), (" --log-level info", true)] {
        let launched = format!("stdio:{binary} serve --listen stdio://{flags}");
        let output = outcome(&["run", "--on", &launched, "--", "echo", "done"], b"").await;
        assert_eq!(text(&output.stdout), "done\n");
        assert_eq!(!output.stderr.is_empty(), logs, "{}", text(&output.stderr));
    }
}

#[tokio::test]
async fn command_that_is_no_server_is_explained() {
    for line in ["false", "echo hello", "cat /etc/passwd"] {
        let on = format!("stdio:{line}");
        let output = outcome(&["run", "--on", &on, "--", "true"], b"").await;
        assert_eq!(output.status.code(), Some(255), "{line}: {output:?}");
        let message = "its command must run `outpost serve --listen stdio://`";
        assert!(text(&output.stderr).contains(message), "{line}: {output:?}");
    }
}

#[tokio::test]
async fn launch_command_is_shell_syntax() {
    let binary = outpost();
    let serve = format!("'{}' serve --listen stdio://", binary.binary().display());
    for line in [
        format!("cd /usr && {serve}"),
        format!("cd /usr; exec {serve}"),
        format!("exec env -C /usr {serve}"),
        format!("PWD=/nowhere env -C /usr {serve}"),
    ] {
        let on = format!("stdio:{line}");
        let output = outcome(&["run", "--on", &on, "--", "/bin/pwd", "-P"], b"").await;
        assert_eq!(text(&output.stdout), "/usr\n", "{line}: {output:?}");
        assert_eq!(output.status.code(), Some(0), "{line}");
    }
}

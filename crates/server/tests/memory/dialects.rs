//! Timeouts and limits of the dialects whose processes belong to a connection.

use std::time::Duration;

use outpost_server::Settings;
use serde_json::{Value, json};
use tokio::time::advance;

use crate::{
    frozen_clock::FrozenClock,
    peer::{Peer, server},
};

const STEP: Duration = Duration::from_millis(100);

/// Settings without an idle timeout.
fn settings() -> Settings {
    Settings {
        silence_timeout: Duration::from_secs(1_000_000),
        ..Settings::default()
    }
}

async fn client(settings: Settings) -> Peer {
    let mut peer = Peer::connect(&server(settings));
    let params = json!({"clientName": "t", "capabilities": {"experimentalApi": true}});
    peer.initialize(params).await;
    peer
}

fn spawn(script: &str, more: Value) -> Value {
    with(
        json!({"command": ["sh", "-c", script], "processHandle": "p", "cwd": "/"}),
        more,
    )
}

fn command(script: &str, more: Value) -> Value {
    with(json!({"command": ["sh", "-c", script]}), more)
}

fn with(mut params: Value, more: Value) -> Value {
    let Value::Object(more) = more else {
        panic!("{more} is no object");
    };
    for (name, value) in more {
        params[name] = value;
    }
    params
}

async fn request(peer: &mut Peer, id: i64, method: &str, params: Value) {
    peer.send(&json!({"id": id, "method": method, "params": params}))
        .await;
}

/// Returns the exit code if `process/exited` was sent. Responses overtake notifications, so
/// it makes several requests.
async fn exit_code_so_far(peer: &mut Peer) -> Option<Value> {
    let mut code = None;
    for id in 1000..1050 {
        request(peer, id, "environment/status", json!({})).await;
        loop {
            let message = peer.message().await;
            if message["id"] == id {
                break;
            }
            if message["method"] == "process/exited" {
                code = Some(message["params"]["exitCode"].clone());
            }
        }
    }
    code
}

async fn exit_code(peer: &mut Peer) -> Value {
    loop {
        let message = peer.message().await;
        if message["method"] == "process/exited" {
            return message["params"]["exitCode"].clone();
        }
        if message["id"] == 7 {
            return message["result"]["exitCode"].clone();
        }
    }
}

/// Echoes its input, and exits at the end of the input.
const ECHO: &str = "echo ready; while read x; do echo $x; done; exit 4";

/// Starts `ECHO` and waits for its first output.
async fn start_echo(peer: &mut Peer, method: &str, more: Value) {
    let streams = json!({"streamStdoutStderr": true, "streamStdin": true, "processId": "p"});
    let params = with(spawn(ECHO, streams), more);
    request(peer, 7, method, params).await;
    wait_for_delta(peer, "cmVhZHkK").await;
}

/// Returns the write method that belongs to a start method.
fn write_method(method: &str) -> &'static str {
    match method {
        "process/spawn" => "process/writeStdin",
        _ => "command/exec/write",
    }
}

/// Asserts that the process still echoes.
async fn assert_alive(peer: &mut Peer, method: &str) {
    let params = json!({"processHandle": "p", "processId": "p", "deltaBase64": "d29yZAo="});
    request(peer, 8, write_method(method), params).await;
    wait_for_delta(peer, "d29yZAo=").await;
}

async fn wait_for_delta(peer: &mut Peer, delta: &str) {
    loop {
        let message = peer.message().await;
        assert!(message["error"].is_null(), "{message}");
        assert_ne!(message["method"], "process/exited", "{message}");
        if message["params"]["deltaBase64"] == delta {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn default_timeout_is_ten_seconds() {
    let _clock = FrozenClock::new();
    for method in ["process/spawn", "command/exec"] {
        let mut peer = client(settings()).await;
        start_echo(&mut peer, method, json!({})).await;
        advance(Duration::from_secs(10) - STEP).await;
        assert_alive(&mut peer, method).await;
        advance(2 * STEP).await;
        assert_eq!(exit_code(&mut peer).await, 124, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_can_be_disabled() {
    let _clock = FrozenClock::new();
    let cases = [
        ("process/spawn", json!({"timeoutMs": null})),
        ("command/exec", json!({"disableTimeout": true})),
    ];
    for (method, more) in cases {
        let mut peer = client(settings()).await;
        start_echo(&mut peer, method, more).await;
        advance(Duration::from_secs(100_000)).await;
        assert_alive(&mut peer, method).await;
        let params = json!({"processHandle": "p", "processId": "p", "closeStdin": true});
        request(&mut peer, 8, write_method(method), params).await;
        assert_eq!(exit_code(&mut peer).await, 4, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn output_is_drained_for_two_seconds_after_the_exit() {
    let _clock = FrozenClock::new();
    let mut peer = client(settings()).await;
    let script = "sleep 1000 & echo early";
    let streamed = json!({"streamStdin": true});
    request(&mut peer, 7, "process/spawn", spawn(script, streamed)).await;
    // Wait until the exit is known to the server.
    loop {
        let params = json!({"processHandle": "p", "deltaBase64": ""});
        let response = peer.call("process/writeStdin", params).await;
        if response["error"]["message"] == "process \"p\" is no longer running" {
            break;
        }
    }
    advance(Duration::from_secs(2) - STEP).await;
    assert_eq!(exit_code_so_far(&mut peer).await, None);
    advance(2 * STEP).await;
    let mut exited = peer.message().await;
    assert!(exited["params"]["usage"].take().is_object());
    let expected = json!({
        "processHandle": "p", "exitCode": 0, "stdout": "early\n", "stdoutCapReached": false,
        "stderr": "", "stderrCapReached": false, "outputDrainTimedOut": true,
        "endedBy": "exit", "usage": null,
    });
    assert_eq!(exited["params"], expected);
}

#[tokio::test(start_paused = true)]
async fn buffered_output_is_bounded_whatever_the_cap() {
    let _clock = FrozenClock::new();
    let settings = Settings {
        buffered_output_bytes: 10,
        ..settings()
    };
    let mut peer = client(settings).await;
    // Each stream gets at least half of the budget, counted in bytes of JSON text.
    for (cap, script, expected) in [
        (
            json!({"disableOutputCap": true}),
            "printf 0123456789; printf 01234 >&2",
            json!({"exitCode": 3, "stdout": "01234", "stderr": "01234", "stdoutCapReached": true}),
        ),
        (
            json!({"outputBytesCap": 1000}),
            "printf '012\\n456'; printf '\\001\\n' >&2",
            json!({
                "exitCode": 3,
                "stdout": "012\n",
                "stderr": "",
                "stdoutCapReached": true,
                "stderrCapReached": true,
            }),
        ),
    ] {
        let script = format!("{script}; exit 3");
        let response = peer.call("command/exec", command(&script, cap)).await;
        assert_eq!(response["result"], expected);
    }
    let uncapped = json!({"outputBytesCap": null});
    request(
        &mut peer,
        7,
        "process/spawn",
        spawn("printf 0123456", uncapped),
    )
    .await;
    assert_eq!(peer.message().await["result"], json!({}));
    let exited = peer.message().await;
    assert_eq!(exited["params"]["stdout"], "01234");
    assert_eq!(exited["params"]["stdoutCapReached"], true);
    // Streamed output is not buffered, so nothing is truncated.
    let streamed = json!({"outputBytesCap": null, "streamStdoutStderr": true});
    request(
        &mut peer,
        7,
        "process/spawn",
        spawn("printf 0123456", streamed),
    )
    .await;
    assert_eq!(peer.message().await["result"], json!({}));
    assert_eq!(
        peer.message().await["params"]["deltaBase64"],
        "MDEyMzQ1Ng=="
    );
}

#[tokio::test(start_paused = true)]
async fn commands_get_the_configured_environment() {
    let _clock = FrozenClock::new();
    let mut settings = settings();
    settings.command_env.include_only = vec!["PATH".to_owned()];
    settings
        .command_env
        .set
        .insert("DROPPED".to_owned(), "x".to_owned());
    let mut peer = client(settings).await;
    let params = json!({"command": ["env"], "env": {"GIVEN": "y", "PATH": null}});
    let response = peer.call("command/exec", params).await;
    assert_eq!(response["result"]["stdout"], "GIVEN=y\n");
}

//! Tests connections whose token expires or is revoked: they end, and their work goes on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outpost_testkit::{Client, ConnectionEnd, sh};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use super::certificates::secure_port;
use super::secret_file;
use super::signed_tokens::{SECRET, jwt, now};
use super::tls_server::{TlsServer, rejected};
use super::tokens_file::TokensFile;
use crate::outpost;

/// The promised time until a revoked token's connections are closed.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

/// Starts a process that copies its input, in a session that outlives the connection.
async fn start_cat(client: &Client) -> Value {
    let params = json!({"clientName": "test", "detachedTtlMs": 60_000});
    let session = client.call("initialize", params).await["sessionId"].clone();
    client.send(&json!({"method": "initialized"})).await;
    client.start(sh("p", "echo started; cat").stdin()).await;
    client.wait_output("p", "started").await;
    session
}

/// Resumes the session and uses its process.
async fn use_cat(client: &Client, session: &Value) {
    let params = json!({"clientName": "test", "resumeSessionId": session});
    client.call("initialize", params).await;
    client.send(&json!({"method": "initialized"})).await;
    client.write("p", "still here\n", "w1").await;
    client.wait_output("p", "still here").await;
    assert!(client.terminate("p").await, "it was running");
}

#[tokio::test]
async fn expired_token_ends_its_connection_at_that_moment() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = secret_file(dir.path(), "secret", SECRET);
    let file = file.to_str().expect("a path");
    let auth = [
        "--ws-auth",
        "signed-bearer-token",
        "--ws-shared-secret-file",
        file,
    ];
    let skew = ["--ws-max-clock-skew-seconds", "0"];
    let host = TlsServer::start(&[&auth[..], &skew].concat()).await;
    let expires = now() + 3;
    let client = host
        .connect(&jwt(&json!({"exp": expires, "sub": "ci"})))
        .await;
    let session = start_cat(&client).await;
    assert_eq!(client.connection_end().await, ConnectionEnd::Code(4401));
    let expiry = UNIX_EPOCH + Duration::from_secs(expires);
    let late = SystemTime::now().duration_since(expiry);
    let late = late.expect("not before it has expired");
    assert!(late < Duration::from_secs(2), "{late:?}");
    let client = host
        .connect(&jwt(&json!({"exp": now() + 600, "sub": "ci"})))
        .await;
    use_cat(&client, &session).await;
}

#[tokio::test]
async fn revoked_token_ends_its_connection_and_not_its_process() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let first = tokens.create("first", &[]).await;
    let second = tokens.create("second", &["--expires", "1h"]).await;
    let host = TlsServer::start(&["--tokens-file", file]).await;
    let other = host.client(&second).await;
    let client = host.connect(&first).await;
    let session = start_cat(&client).await;
    let revoked = Instant::now();
    let revoke = ["token", "revoke", "first", "--tokens-file", file];
    assert_eq!(outpost().run(&revoke).await.code, Some(0));
    assert_eq!(client.connection_end().await, ConnectionEnd::Code(4401));
    let ended = revoked.elapsed();
    assert!(ended < REVOKED_WITHIN, "{ended:?}");
    other.check_alive().await;
    let again = host.upgrade_with(&first).await;
    assert_eq!(again, rejected("invalid websocket bearer token"));
    let third = tokens.create("first", &[]).await;
    let accepted = async {
        while host.upgrade_with(&third).await.0 != 101 {
            tokio::task::yield_now().await;
        }
    };
    outpost_testkit::deadline::expect_soon("the new token", accepted).await;
    use_cat(&host.connect(&third).await, &session).await;
}

#[tokio::test]
async fn command_continues_with_the_new_token_of_its_file() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let first = tokens.create("ci", &[]).await;
    let client_file = secret_file(tokens.directory(), "token", &first);
    let host = TlsServer::start(&["--tokens-file", file]).await;
    let ca = secret_file(tokens.directory(), "ca.pem", &host.authority.pem());
    let go = tokens.directory().join("go");
    let script = format!(
        "echo one; while ! test -e {}; do sleep 0.05; done; echo two; exit 7",
        go.display()
    );
    let mut running = Command::new(outpost().binary())
        .args([
            "run",
            "--on",
            &format!("wss://localhost:{}", secure_port(&host.server)),
        ])
        .args(["--token-file".as_ref(), client_file.as_path()])
        .args(["--ca".as_ref(), ca.as_path()])
        .args(["--", "sh", "-c", &script])
        .env("OUTPOST_CONFIG", "/dev/null")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut stdout = BufReader::new(running.stdout.take().expect("a pipe"));
    let mut stderr = BufReader::new(running.stderr.take().expect("a pipe"));
    let mut printed = String::new();
    stdout.read_line(&mut printed).await.expect("output");

    let revoke = ["token", "revoke", "ci", "--tokens-file", file];
    assert_eq!(outpost().run(&revoke).await.code, Some(0));
    let mut notices = String::new();
    stderr.read_line(&mut notices).await.expect("a notice");
    assert!(
        notices.contains("connection lost, reconnecting"),
        "{notices}"
    );
    // The new one comes after the old one was refused.
    let second = tokens.create("ci", &[]).await;
    secret_file(tokens.directory(), "token", &second);
    stderr.read_line(&mut notices).await.expect("a notice");
    assert!(notices.contains("connected again"), "{notices}");
    std::fs::write(&go, "").expect("a file");
    stdout.read_to_string(&mut printed).await.expect("the rest");
    stderr.read_to_string(&mut notices).await.expect("notices");
    assert_eq!(printed, "one\ntwo\n", "{notices}");
    let status = running.wait().await.expect("an exit");
    assert_eq!(status.code(), Some(7), "{notices}");
    assert!(!notices.contains(&first) && !notices.contains(&second));
}

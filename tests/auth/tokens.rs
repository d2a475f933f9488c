//! Tests the capability token, named tokens and the flags of authentication.

use outpost_testkit::http_client::{UPGRADE, get};
use outpost_testkit::sh;
use serde_json::{Value, json};

use super::tls_server::{TlsServer, rejected};
use super::tokens_file::TokensFile;
use super::{new_token, secret_file};
use crate::outpost;

/// SHA-256 of `abc`.
const HASH_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test]
async fn capability_token_is_required() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = secret_file(dir.path(), "token", "s3cret\n");
    let file = file.to_str().expect("a path");
    let args = ["--ws-auth", "capability-token", "--ws-token-file", file];
    let host = TlsServer::start(&args).await;
    for path in ["/healthz", "/readyz"] {
        let probe = get(host.tunnel.address(), path, &[]).await;
        assert_eq!((probe.status, &*probe.body), (200, "ok\n"), "{path}");
    }
    for (header, text) in [
        ("X-Token: s3cret", "missing websocket bearer token"),
        ("Authorization: Basic czM=", "invalid authorization header"),
        ("Authorization: s3cret", "invalid authorization header"),
        ("Authorization: Bearer", "invalid authorization header"),
        (
            "Authorization: Bearer s3cre",
            "invalid websocket bearer token",
        ),
    ] {
        let response = host.upgrade(&[header]).await;
        assert_eq!((response.status, response.body), rejected(text), "{header}");
    }
    // Never in a URL.
    let in_url = get(host.tunnel.address(), "/?token=s3cret", UPGRADE).await;
    assert_eq!(in_url.body, "missing websocket bearer token");
    let accepted = host.upgrade(&["authorization: bEaReR s3cret"]).await;
    assert_eq!(accepted.status, 101);
    let client = host.client("s3cret").await;
    let log = client.run(sh("p", "echo hi")).await;
    assert_eq!(log.stdout(), "hi\n");
    let log = host.server.stderr();
    assert!(!log.contains("s3cret"), "{log}");
    assert_eq!(log.matches("authentication failed").count(), 6, "{log}");
}

#[tokio::test]
async fn short_capability_token_is_logged_with_its_length() {
    let warns = async |token: &str| {
        let dir = tempfile::tempdir().expect("a directory");
        let file = secret_file(dir.path(), "token", token);
        let file = file.to_str().expect("a path");
        let args = ["--ws-auth", "capability-token", "--ws-token-file", file];
        let log = outpost().args(&args).start().await.stderr();
        let warning = log.lines().find(|line| line.contains("short enough"))?;
        assert!(warning.contains(file), "{warning}");
        Some(warning.to_owned())
    };
    let warning = warns("0123456789abcde\n").await.expect("a warning");
    assert!(warning.contains("bytes=15"), "{warning}");
    assert!(!warning.contains("0123"), "{warning}");
    assert_eq!(warns("0123456789abcdef\n").await, None);
}

#[tokio::test]
async fn replaced_capability_token_ends_the_connections_of_the_old_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = secret_file(dir.path(), "token", "first");
    let file = file.to_str().expect("a path");
    let args = ["--ws-auth", "capability-token", "--ws-token-file", file];
    let host = TlsServer::start(&args).await;
    let client = host.client("first").await;
    secret_file(dir.path(), "token", "second");
    let end = client.connection_end().await;
    assert_eq!(end, outpost_testkit::ConnectionEnd::Code(4401));
    host.client("second").await.check_alive().await;
}

#[tokio::test]
async fn browser_sends_its_token_as_a_subprotocol() {
    let args = [
        "--ws-auth",
        "capability-token",
        "--ws-token-sha256",
        HASH_OF_ABC,
    ];
    let host = TlsServer::start(&args).await;
    let protocols = "Sec-WebSocket-Protocol: outpost.bearer.YWJj, outpost.v1";
    let response = host.upgrade(&[protocols]).await;
    assert_eq!(response.status, 101);
    assert_eq!(
        response.header("sec-websocket-protocol"),
        Some("outpost.v1")
    );
    let wrong = "Sec-WebSocket-Protocol: outpost.bearer.YWJk, outpost.v1";
    let response = host.upgrade(&[wrong]).await;
    assert_eq!(response.body, "invalid websocket bearer token");
    let response = host
        .upgrade(&["Origin: https://evil.example", protocols])
        .await;
    assert_eq!(response.status, 403, "a token does not admit other origins");
}

#[tokio::test]
async fn repeated_failures_are_answered_slowly() {
    let args = [
        "--ws-auth",
        "capability-token",
        "--ws-token-sha256",
        HASH_OF_ABC,
    ];
    let host = TlsServer::start(&args).await;
    let mut delays = Vec::new();
    for _ in 0..6 {
        let asked = std::time::Instant::now();
        assert_eq!(host.upgrade_with("guess").await.0, 401);
        delays.push(asked.elapsed().as_millis());
    }
    assert!(delays[4] >= 200 && delays[5] >= 400, "{delays:?}");
    // A right token waits for nothing.
    let asked = std::time::Instant::now();
    assert_eq!(host.upgrade_with("abc").await.0, 101);
    assert!(asked.elapsed().as_millis() < delays[5], "{delays:?}");
}

#[tokio::test]
async fn tokens_are_listed_without_the_tokens() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let token = tokens.create("ci", &["--scopes", "exec,files:read"]).await;
    let list = outpost()
        .run(&["token", "list", "--tokens-file", file])
        .await;
    assert!(
        list.stdout.contains("ci") && list.stdout.contains("exec,files:read"),
        "{list:?}"
    );
    let text = std::fs::read_to_string(file).expect("the tokens");
    assert!(!text.contains(&token) && !list.stdout.contains(&token));
    let json = outpost()
        .run(&["token", "list", "--json", "--tokens-file", file])
        .await;
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["tokens"][0]["scopes"], json!(["exec", "files:read"]));
    let new = ["token", "new", "--name", "ci", "--tokens-file", file];
    let again = outpost().run(&new).await;
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("exists"), "{again:?}");
}

#[tokio::test]
async fn unusable_flags_are_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| secret_file(dir.path(), name, text).display().to_string();
    let (empty, short) = (file("empty", "\n"), file("short", "x"));
    let (token, secret) = (file("token", "s3cret"), file("secret", &"x".repeat(32)));
    let exposed = dir.path().join("exposed");
    std::fs::write(&exposed, "s3cret").expect("a file");
    let exposed = exposed.display().to_string();
    let [signed, capability] =
        ["signed-bearer-token", "capability-token"].map(|kind| vec!["--ws-auth", kind]);
    let none = Vec::new();
    for (auth, flags, text) in [
        (
            &capability,
            vec![],
            "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set".to_owned(),
        ),
        (
            &capability,
            vec!["--ws-token-file", &token, "--ws-token-sha256", HASH_OF_ABC],
            "`--ws-token-file` and `--ws-token-sha256` are mutually exclusive".to_owned(),
        ),
        (
            &signed,
            vec![],
            "`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set".to_owned(),
        ),
        (
            &none,
            vec!["--ws-token-file", &empty],
            "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`".to_owned(),
        ),
        (
            &none,
            vec!["--ws-max-clock-skew-seconds", "5"],
            "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`".to_owned(),
        ),
        (
            &capability,
            vec!["--ws-token-file", &token, "--ws-issuer", "us"],
            "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`".to_owned(),
        ),
        (
            &signed,
            vec!["--ws-shared-secret-file", &secret, "--ws-token-file", &token],
            "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`".to_owned(),
        ),
        (
            &capability,
            vec!["--ws-token-file", &empty],
            format!("websocket auth secret {empty} must not be empty"),
        ),
        (
            &signed,
            vec!["--ws-shared-secret-file", &short],
            format!("signed websocket bearer secret {short} must be at least 32 bytes"),
        ),
        (
            &capability,
            vec!["--ws-token-file", &exposed],
            format!("{exposed} can be read by other users (mode 0644); run chmod 600 on it"),
        ),
        (
            &none,
            vec!["--tokens-file", &exposed],
            format!("{exposed} can be read by other users (mode 0644); run chmod 600 on it"),
        ),
    ] {
        // Otherwise the cleanup of a killed server's cgroup may be logged first.
        let serve = ["serve", "--log-level", "off"];
        let output = outpost()
            .run(&[&serve, &auth[..], &flags].concat())
            .await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert_eq!(output.stderr, format!("outpost: {text}\n"));
    }
}

#[tokio::test]
async fn concurrent_commands_lose_no_token_and_no_revocation() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let old = ["a", "b", "c", "d"];
    for name in old {
        tokens.create(name, &[]).await;
    }
    let revoke = old.map(|name| async move {
        let revoke = ["token", "revoke", name, "--tokens-file", file];
        let output = outpost().run(&revoke).await;
        assert_eq!(output.code, Some(0), "{output:?}");
    });
    let create = ["e", "f", "g", "h"].map(|name| tokens.create(name, &[]));
    let [a, b, c, d] = revoke;
    let [e, f, g, h] = create;
    tokio::join!(a, e, b, f, c, g, d, h);
    let list = ["token", "list", "--json", "--tokens-file", file];
    let list = outpost().run(&list).await;
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    let listed = list["tokens"].as_array().expect("tokens");
    let mut names: Vec<_> = listed.iter().map(|token| &token["name"]).collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, ["e", "f", "g", "h"]);
}

#[tokio::test]
async fn token_is_revoked_through_a_symbolic_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("tokens.toml");
    let link = dir.path().join("link");
    new_token(file.to_str().expect("a path"), "ci", &[]).await;
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let link = link.to_str().expect("a path");
    let revoke = ["token", "revoke", "ci", "--tokens-file", link];
    assert_eq!(outpost().run(&revoke).await.code, Some(0));
    let text = std::fs::read_to_string(&file).expect("the tokens");
    assert!(!text.contains("ci"), "{text}");
    assert!(std::path::Path::new(link).is_symlink());
}

#[tokio::test]
async fn expiry_beyond_the_calendar_is_an_error() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let new = ["token", "new", "--name", "ci", "--tokens-file", file];
    let far = outpost()
        .run(&[&new[..], &["--expires", "3000000d"]].concat())
        .await;
    assert_eq!(far.code, Some(1), "{far:?}");
    assert!(far.stderr.contains("--expires is too long"), "{far:?}");
    // As an older version would have written it.
    tokens.create("ci", &[]).await;
    let text = std::fs::read_to_string(file).expect("the tokens");
    super::secret_file(
        tokens.directory(),
        "tokens.toml",
        &(text + "expires = 300000000000\n"),
    );
    let list = ["token", "list", "--tokens-file", file];
    let list = outpost().run(&list).await;
    assert!(list.stdout.contains("never"), "{list:?}");
}

//! Tests what `outpost doctor` says about certificates, tokens and hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outpost_testkit::CommandOutput;
use serde_json::Value;

use super::certificates::{secure_port, tls_arguments};
use super::tls_server::TlsServer;
use super::tokens_file::TokensFile;
use super::{new_token, secret_file};
use crate::outpost;

/// The exit code, and the state and text of a check.
fn check(output: &CommandOutput, name: &str) -> (Option<i32>, String, String) {
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks").iter();
    let mut named = checks.filter(|check| check["name"] == name);
    let check = named
        .next()
        .unwrap_or_else(|| panic!("no {name} in {report}"));
    let text = format!("{} {}", check["found"], check["toDo"]);
    (
        output.code,
        check["state"].as_str().expect("a state").to_owned(),
        text,
    )
}

#[tokio::test]
async fn certificate_and_secret_files_are_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    super::certificates::Authority::new()
        .for_localhost()
        .write(dir.path());
    let tokens = dir.path().join("tokens.toml");
    new_token(tokens.to_str().expect("a path"), "ci", &["--expires", "1h"]).await;
    let [_, cert, _, key] = tls_arguments(dir.path());
    let config = dir.path().join("outpost.toml");
    let text = format!(
        "tls_cert = {cert:?}\ntls_key = {key:?}\ntokens_file = {:?}\n",
        tokens.display().to_string()
    );
    fs::write(&config, text).expect("a configuration");
    let config = config.to_str().expect("a path");
    let doctor = async || {
        outpost()
            .run(&["doctor", "--json", "--config", config])
            .await
    };

    let good = doctor().await;
    let (_, state, text) = check(&good, "certificate");
    assert!(
        state == "works" && text.contains("is valid until"),
        "{text}"
    );
    let (_, state, text) = check(&good, "tokens_file");
    assert!(
        state == "works" && text.contains("1 tokens, 0 of them expired"),
        "{text}"
    );
    let (_, state, _) = check(&good, "authentication");
    assert_eq!(state, "works");
    assert_eq!(check(&good, "limits").0, good.code);

    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o644)).expect("a mode");
    let exposed = doctor().await;
    let (code, state, text) = check(&exposed, "tokens_file");
    assert_eq!((code, &*state), (Some(1), "failed"), "{text}");
    assert!(text.contains("run chmod 600 on it"), "{text}");
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).expect("a mode");

    let other = tempfile::tempdir().expect("a directory");
    super::certificates::Authority::new()
        .for_localhost()
        .write(other.path());
    fs::copy(other.path().join("key.pem"), &key).expect("another key");
    let (code, state, text) = check(&doctor().await, "certificate");
    assert_eq!((code, &*state), (Some(1), "failed"), "{text}");
    assert!(
        text.contains("cannot use") && text.contains("key.pem"),
        "{text}"
    );
}

#[tokio::test]
async fn configured_hosts_are_reached_at_once() {
    let tokens = TokensFile::new();
    let token = tokens.create("ci", &[]).await;
    let host = TlsServer::start(&["--tokens-file", tokens.path()]).await;
    let url = format!("wss://localhost:{}", secure_port(&host.server));
    let file = |name: &str, text: &str| {
        secret_file(tokens.directory(), name, text)
            .display()
            .to_string()
    };
    let (ca, token) = (file("ca.pem", &host.authority.pem()), file("token", &token));
    let config = format!(
        "[hosts.build]\nurl = {url:?}\nca = {ca:?}\ntoken_file = {token:?}\n\
         [hosts.untrusted]\nurl = {url:?}\n\
         [hosts.gone]\nurl = \"ws://127.0.0.1:1\"\n\
         [hosts.launched]\nurl = \"stdio:exit 1\"\n"
    );
    let config = file("outpost.toml", &config);
    let output = outpost()
        .run(&["doctor", "--json", "--config", &config])
        .await;
    for (name, state, text) in [
        ("host build", "works", "version 0."),
        ("host untrusted", "failed", "--fingerprint sha256:"),
        ("host gone", "failed", "nothing listens"),
        ("host launched", "unknown", "outpost hosts test launched"),
    ] {
        let found = check(&output, name);
        assert!(
            found.1 == state && found.2.contains(text),
            "{name}: {found:?}"
        );
    }
    // They may be switched off.
    let without = outpost().run(&["doctor", "--json"]).await;
    assert_eq!(output.code, without.code);
}

//! Tests `environment/info` and `environment/status`.

use std::path::Path;

use outpost_testkit::{Transport, file_uri};
use serde_json::json;

use crate::{outpost, over_each_transport};

#[tokio::test]
async fn status_is_ready() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let status = client.call("environment/status", json!({})).await;
        assert_eq!(status, json!({"status": "ready"}));
    })
    .await;
}

#[tokio::test]
async fn info_describes_the_host() {
    let server = outpost().env("HOME", "/some/where").start().await;
    let info = server
        .client()
        .await
        .call("environment/info", json!({}))
        .await;
    let cwd = std::env::current_dir().expect("a working directory");
    assert_eq!(info["cwd"], file_uri(&cwd));
    assert_eq!(info["userHomeDir"], "file:///some/where");
    assert_eq!(info["platformOs"], "linux");
    let provider = info["providerId"].as_str().unwrap_or_default();
    let digits = provider.strip_prefix("sha256:").unwrap_or_default();
    assert!(digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit()));
    let other = outpost().env("HOME", "/else/where").start().await;
    let other = other.client().await;
    let again = other.call("environment/info", json!({})).await;
    assert_eq!(again["providerId"], provider, "the same program");
    assert!(
        info["executorVersion"]
            .as_str()
            .is_some_and(|version| !version.is_empty())
    );

    let name = info["shell"]["name"].as_str().unwrap_or_default();
    let path = info["shell"]["path"].as_str().unwrap_or_default();
    assert!(["bash", "zsh", "sh"].contains(&name), "{info}");
    assert!(path.starts_with('/') && path.ends_with(name), "{info}");
    assert!(Path::new(path).is_file(), "{info}");
}

#[tokio::test]
async fn relative_home_falls_back_to_the_user_database() {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").expect("a list of users");
    let mut entries = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let own = entries.find(|fields| fields.get(2) == Some(&&*uid));
    // A user without a passwd entry has no home directory.
    let home = own.map(|fields| file_uri(Path::new(fields[5])));
    for none in ["", "relative"] {
        let server = outpost().env("HOME", none).start().await;
        let client = server.client().await;
        let info = client.call("environment/info", json!({})).await;
        assert_eq!(info["userHomeDir"], json!(home), "{none:?}");
    }
}

#[tokio::test]
async fn info_announces_only_working_features() {
    let server = outpost().start().await;
    let info = server
        .client()
        .await
        .call("environment/info", json!({}))
        .await;
    let capabilities = info["capabilities"].as_object().expect("an object");
    let known = [
        ("networkProxyLaunch", true),
        ("networkProxyReviewDomains", true),
        ("credentialMasking", false),
        ("credentialMaskingCustomProviders", false),
        ("capabilityDiscoverySandbox", true),
        ("fsWatchMissing", true),
        ("capabilityDiscoveryV2", true),
        ("environmentConfigRead", true),
        ("httpHeaderEnvVars", true),
        ("sandboxedFileStreaming", true),
        ("fileWriteStreaming", true),
        ("shellSnapshotV2", true),
        ("windowsMxc", false),
        ("linuxRootWritePreservesDevices", false),
        ("linuxApprovedRootWritePreservesRestrictions", false),
    ];
    for (name, works) in known {
        assert_eq!(capabilities[name], json!(works), "{name}");
    }
    assert_eq!(capabilities.len(), known.len());
}

#[tokio::test]
async fn temporary_directories_follow_tmpdir() {
    let cwd = std::env::current_dir().expect("a working directory");
    let inside = file_uri(&cwd.join("here"));
    let cases = [
        (
            Some("/var/some where"),
            json!(["file:///var/some%20where"]),
            "file:///var/some%20where",
        ),
        (Some("here"), json!([inside]), &*inside),
        (Some(""), json!([]), "file:///tmp"),
    ];
    for (tmpdir, directories, temp_dir) in cases {
        let server = outpost()
            .env("TMPDIR", tmpdir.unwrap_or_default())
            .start()
            .await;
        let info = server
            .client()
            .await
            .call("environment/info", json!({}))
            .await;
        assert_eq!(info["temporaryDirectories"], directories, "{tmpdir:?}");
        assert_eq!(info["tempDir"], temp_dir, "{tmpdir:?}");
    }
    let server = outpost().env_clear().start().await;
    let info = server
        .client()
        .await
        .call("environment/info", json!({}))
        .await;
    assert_eq!(info["temporaryDirectories"], json!([]));
    assert_eq!(info["tempDir"], "file:///tmp");
}

#[tokio::test]
async fn info_reports_sandbox_availability() {
    let server = outpost().start().await;
    let client = server.client().await;
    let info = client.call("environment/info", json!({})).await;
    let well = json!({"type": "linuxSeccomp", "level": "namespaces", "reason": null});
    assert_eq!(info["sandbox"], well);
    let server = outpost().env("PATH", "/nowhere").start().await;
    let client = server.client().await;
    let info = client.call("environment/info", json!({})).await;
    assert_eq!(info["sandbox"]["type"], "none");
    assert_eq!(info["capabilities"]["sandboxedFileStreaming"], false);
    assert_eq!(info["capabilities"]["capabilityDiscoverySandbox"], false);
    let reason = info["sandbox"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("package bubblewrap"), "{info}");
}

#[tokio::test]
async fn empty_params_must_be_an_object() {
    let server = outpost().on(Transport::Unix).start().await;
    let client = server.client().await;
    for method in [
        "environment/info",
        "environment/status",
        "process/list",
        "session/list",
    ] {
        for wrong in [json!([]), json!(5), json!("x"), json!(true)] {
            let error = client.call_fails(method, wrong.clone()).await;
            assert_eq!(error.code, -32602, "{method} {wrong}: {error:?}");
        }
        for right in [json!({}), json!(null)] {
            client.call(method, right).await;
        }
    }
    for method in ["environment/status", "process/list", "session/list"] {
        client.call(method, json!({"x": 1})).await;
    }
    for (wrong, text) in [
        (json!({"x": 1}), "invalid type: map, expected unit"),
        (json!([]), "invalid type: sequence, expected unit"),
    ] {
        let error = client.call_fails("environment/info", wrong).await;
        assert_eq!(error.parts(), (-32602, text));
    }
}

//! `initialize` and `environment/*`.

use super::Replay;
use crate::outpost;

#[tokio::test]
async fn handshake_is_answered_as_recorded() {
    let server = outpost().start().await;
    let mut replay = Replay::connect(&server).await;
    replay
        .run(
            r#"
            → environment/status {}
            ← -32600 client must call initialize before using environment status methods
            → environmentConfig/read {"cwd":"{dir}","configPaths":[["a"]],"requirementsPaths":[]}
            ← -32600 client must call initialize before using environment config methods
            → capabilities/discoverV2 {"cwd":"{dir}"}
            ← -32600 client must call initialize before using capability discovery methods
            → fs/watchMissing {"watchId":1,"missing":[]}
            ← -32600 client must call initialize before using filesystem methods
            → fs/watchMissing {"watchId":1}
            ← -32602 missing field `missing`
            → initialize {}
            ← -32602 missing field `clientName`
            → initialize {"clientName":3}
            ← -32602 invalid type: number, expected a string
            → initialize {"clientName":"x","unknown":{"member":1}}
            ← {}
            → environment/status {}
            ← -32600 client must send initialized before using environment status methods
            "#,
        )
        .await;
    let result = &replay.response;
    assert!(result.get("result").is_none(), "{result}");
}

#[tokio::test]
async fn environment_is_described_as_recorded() {
    let server = outpost()
        .env("HOME", "/home/agent")
        .env("TMPDIR", "rel/dir")
        .start()
        .await;
    let mut replay = Replay::connect(&server).await;
    let cwd = std::env::current_dir().expect("a directory");
    let cwd = outpost_testkit::file_uri(&cwd);
    replay.run(r#"→ initialize {"clientName":"x"}"#).await;
    let initialized = replay.response["result"].clone();
    let info = &initialized["environmentInfo"];
    assert!(initialized["sessionId"].is_string());
    assert_eq!(info["cwd"], cwd);
    assert_eq!(info["userHomeDir"], "file:///home/agent");
    assert_eq!(info["platformOs"], "linux");
    assert_eq!(info["tempDir"], format!("{cwd}/rel/dir"));
    let temporary = serde_json::json!([format!("{cwd}/rel/dir")]);
    assert_eq!(info["temporaryDirectories"], temporary);
    for member in ["shell", "executorVersion", "providerId"] {
        assert!(!info[member].is_null(), "{member} in {info}");
    }
    for works in [
        "capabilityDiscoverySandbox",
        "fsWatchMissing",
        "capabilityDiscoveryV2",
        "environmentConfigRead",
        "httpHeaderEnvVars",
        "fileWriteStreaming",
    ] {
        assert_eq!(info["capabilities"][works], true, "{works}");
    }
    assert_eq!(info["capabilities"]["windowsMxc"], false);
    let exchange = format!(
        r#"
        > {{"method":"initialized","params":{{}}}}
        → environment/info {{}}
        ← {info}
        → environment/info null
        ← {info}
        → environment/info {{"x":1}}
        ← -32602 invalid type: map, expected unit
        → environment/info []
        ← -32602 invalid type: sequence, expected unit
        → environment/status {{}}
        ← {{"status":"ready"}}
        → nosuch/method {{}}
        ← -32601 exec-server stub does not implement `nosuch/method` yet
        "#
    );
    replay.run(&exchange).await;
}

#[tokio::test]
async fn start_params_are_decoded_as_recorded() {
    let server = outpost().start().await;
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → process/start {"argv":["true"]}
            ← -32602 missing field `processId`
            → process/start {"processId":"p","argv":["true"],"cwd":"/native","env":{},"tty":false}
            ← -32602 invalid URI: relative URL without a base
            → process/start {"processId":"p","argv":["true"],"cwd":"{dir}","env":{},"tty":false,"metadata":{"threadId":"x"}}
            ← -32602 invalid character: expected an optional prefix of `urn:uuid:`…
            → process/start {"processId":"p","argv":["true"],"cwd":"{dir}","env":{},"tty":false,"metadata":{"threadId":"2d4c57aa-6de0-4aef-9106-4dfcffa4818b","toolCallId":"any","other":1}}
            ← {"processId":"p"}
            "#,
        )
        .await;
}

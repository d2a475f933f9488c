//! Clients of the app-server, which were initialized with `clientInfo`.

use std::{fs, os::unix::fs::symlink, time::SystemTime};

use serde_json::{Value, json};

use super::{Replay, notifications};
use crate::{outpost, unsandboxed_outpost};

/// A relative path, a URI and no path at all.
const NOT_ABSOLUTE: &str = "Invalid request: AbsolutePathBuf deserialized without a base path";

#[tokio::test]
async fn introductions_are_checked_as_recorded() {
    let server = outpost().start().await;
    let mut replay = Replay::connect(&server).await;
    replay
        .run(
            r#"
            → config/read {}
            ← -32600 Not initialized
            → initialize {"clientInfo":{"name":"x"}}
            ← -32600 Invalid request: missing field `version`
            → initialize {"clientInfo":{"name":3,"version":"1"}}
            ← -32600 Invalid request: invalid type: integer `3`, expected a string
            → initialize {"clientInfo":{"name":"x","version":"1"},"capabilities":{"experimentalApi":"x"}}
            ← -32600 Invalid request: invalid type: string "x", expected a boolean
            → initialize {"clientInfo":{"name":"x","version":"1"},"capabilities":{"optOutNotificationMethods":"x"}}
            ← -32600 Invalid request: invalid type: string "x", expected a sequence
            → initialize {"clientInfo":{"name":"x","version":"1"},"capabilities":{"optOutNotificationMethods":null}}
            ← {"platformFamily":"unix","platformOs":"linux"}
            → initialize {"clientInfo":{"name":"x","version":"1"}}
            ← -32600 Already initialized
            → fs/getMetadata {"path":"/"}
            ← {"isDirectory":true}
            "#,
        )
        .await;
}

#[tokio::test]
async fn files_have_native_paths() {
    let server = outpost().start().await;
    fs::write(server.dir().join("f"), "hello").expect("a file");
    symlink("f", server.dir().join("l")).expect("a link");
    symlink("made", server.dir().join("dangling")).expect("a link");
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            → fs/readFile {"path":"{path}/f"}
            ← {"dataBase64":"aGVsbG8="}
            → fs/readFile {"path":"{path}/./d//../l/","unknown":1}
            ← {"dataBase64":"aGVsbG8="}
            → fs/writeFile {"path":"{path}/dangling","dataBase64":"aGk="}
            ← {}
            = made hi
            → fs/createDirectory {"path":"{path}/d/e","recursive":null}
            ← {}
            → fs/getMetadata {"path":"{path}/l"}
            ← {"isDirectory":false,"isFile":true,"isSymlink":true}
            → fs/copy {"sourcePath":"{path}/f","destinationPath":"{path}/d/c"}
            ← {}
            → fs/readDirectory {"path":"{path}/d"}
            ← {"entries":[{"fileName":"c","isDirectory":false,"isFile":true},{"fileName":"e","isDirectory":true,"isFile":false}]}
            → fs/remove {"path":"{path}/d","recursive":null,"force":null}
            ← {}
            → fs/remove {"path":"{path}/d"}
            ← {}
            "#,
        )
        .await;
    let metadata = json!({"path": server.dir()});
    let metadata = replay.client.call("fs/getMetadata", metadata).await;
    let members: Vec<&String> = metadata.as_object().expect("an object").keys().collect();
    let expected = [
        "createdAtMs",
        "isDirectory",
        "isFile",
        "isSymlink",
        "modifiedAtMs",
    ];
    assert_eq!(members, expected);
}

#[tokio::test]
async fn files_have_the_codes_of_the_app_server() {
    let server = outpost().start().await;
    fs::write(server.dir().join("f"), "").expect("a file");
    fs::create_dir_all(server.dir().join("d/e")).expect("directories");
    let fifo = server.dir().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(made.expect("mkfifo").success());
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            → fs/readFile {"path":"{path}/no"}
            ← -32603 No such file or directory (os error 2)
            → fs/readFile {"path":"{path}/f/x"}
            ← -32603 Not a directory (os error 20)
            → fs/readFile {"path":"{path}/d"}
            ← -32600 path `{path}/d` is not a file
            → fs/readFile {"path":"{path}/fifo"}
            ← -32600 path `{path}/fifo` is not a file
            → fs/readFile {"path":"/dev/null"}
            ← -32600 path `/dev/null` is not a file
            → fs/readFile {"path":"{path}/a\u0000b"}
            ← -32600 file name contained an unexpected NUL byte
            → fs/remove {"path":"{path}/a\u0000b"}
            ← -32600 file name contained an unexpected NUL byte
            → fs/readFile {"path":3}
            ← -32600 Invalid request: invalid type: integer `3`, expected path string
            → fs/readFile {"path":null}
            ← -32600 Invalid request: invalid type: null, expected path string
            → fs/readFile {}
            ← -32600 Invalid request: missing field `path`
            → fs/readFile null
            ← -32600 Invalid request: missing field `params`
            → fs/writeFile {"path":"{path}/d","dataBase64":"aGk="}
            ← -32603 Is a directory (os error 21)
            → fs/writeFile {"path":"{path}/no/f","dataBase64":"aGk="}
            ← -32603 No such file or directory (os error 2)
            → fs/writeFile {"path":"{path}/f"}
            ← -32600 Invalid request: missing field `dataBase64`
            → fs/writeFile {"path":"{path}/f","dataBase64":3}
            ← -32600 Invalid request: invalid type: integer `3`, expected a string
            → fs/writeFile {"path":"{path}/f","dataBase64":"!!"}
            ← -32600 fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0.
            → fs/createDirectory {"path":"{path}/d","recursive":false}
            ← -32603 File exists (os error 17)
            → fs/createDirectory {"path":"{path}/no/x","recursive":false}
            ← -32603 No such file or directory (os error 2)
            → fs/createDirectory {"path":"{path}/x","recursive":"x"}
            ← -32600 Invalid request: invalid type: string "x", expected a boolean
            → fs/getMetadata {"path":"{path}/no"}
            ← -32603 No such file or directory (os error 2)
            → fs/readDirectory {"path":"{path}/f"}
            ← -32603 Not a directory (os error 20)
            → fs/copy {"sourcePath":"{path}/d","destinationPath":"{path}/c"}
            ← -32600 fs/copy requires recursive: true when sourcePath is a directory
            → fs/copy {"sourcePath":"{path}/d","destinationPath":"{path}/d/e/x","recursive":true}
            ← -32600 fs/copy cannot copy a directory to itself or one of its descendants
            → fs/copy {"sourcePath":"{path}/fifo","destinationPath":"{path}/c","recursive":true}
            ← -32600 fs/copy only supports regular files, directories, and symlinks
            → fs/copy {"sourcePath":"{path}/no","destinationPath":"{path}/c"}
            ← -32603 No such file or directory (os error 2)
            → fs/copy {"sourcePath":"{path}/f"}
            ← -32600 Invalid request: missing field `destinationPath`
            → fs/remove {"path":"{path}/no","force":false}
            ← -32603 No such file or directory (os error 2)
            → fs/remove {"path":"{path}/d","recursive":false}
            ← -32603 Directory not empty (os error 39)
            "#,
        )
        .await;
    for path in ["rel", "", "~/x", "file:///etc/hostname", "http://host/"] {
        for (method, params) in [
            ("fs/readFile", json!({"path": path})),
            ("fs/getMetadata", json!({"path": path})),
            ("fs/watch", json!({"watchId": "a", "path": path})),
            (
                "fs/copy",
                json!({"sourcePath": "/f", "destinationPath": path}),
            ),
        ] {
            let error = replay.client.call_fails(method, params).await;
            assert_eq!(error.parts(), (-32600, NOT_ABSOLUTE), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn watches_are_answered_as_recorded() {
    let server = outpost().start().await;
    fs::create_dir(server.dir().join("d")).expect("a directory");
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            → fs/watch {"watchId":"dir","path":"{path}/d/"}
            ← {"path":"{path}/d"}
            → fs/watch {"watchId":"dir","path":"{path}/d"}
            ← -32600 watchId already exists: dir
            → fs/watch {"watchId":"b"}
            ← -32600 Invalid request: missing field `path`
            → fs/watch {"path":"/"}
            ← -32600 Invalid request: missing field `watchId`
            → fs/watch {"watchId":3,"path":"/"}
            ← -32600 Invalid request: invalid type: integer `3`, expected a string
            "#,
        )
        .await;
    fs::write(server.dir().join("d/b"), "").expect("a file");
    fs::write(server.dir().join("d/a"), "").expect("a file");
    replay
        .run(
            r#"
            ⇐ fs/changed {"watchId":"dir","changedPaths":["{path}/d/a","{path}/d/b"]}
            → fs/unwatch {"watchId":"dir"}
            ← {}
            → fs/unwatch {"watchId":"unknown"}
            ← {}
            → fs/unwatch {}
            ← -32600 Invalid request: missing field `watchId`
            "#,
        )
        .await;
}

#[tokio::test]
async fn unknown_methods_are_unknown_variants() {
    let server = outpost().start().await;
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            → nosuch {}
            ← -32600 Invalid request: unknown variant `nosuch`, expected one of `initialize`, …
            → fs/nosuch null
            ← -32600 Invalid request: unknown variant `fs/nosuch`, expected one of `initialize`, …
            → process/kill null
            ← -32600 Invalid request: missing field `params`
            → config/read null
            ← -32600 Invalid request: missing field `params`
            → config/read {"includeLayers":"x"}
            ← -32600 Invalid request: invalid type: string "x", expected a boolean
            → config/read {"cwd":3}
            ← -32600 Invalid request: invalid type: integer `3`, expected a string
            → config/read {"cwd":null}
            ← {}
            "#,
        )
        .await;
    let without = replay.client.call("config/read", json!({})).await;
    for cwd in ["rel", "/nosuch"] {
        let with = replay.client.call("config/read", json!({"cwd": cwd})).await;
        assert_eq!(with, without, "there are no settings per directory");
    }
}

/// Waits for the end of a process, and returns the notifications so far.
async fn until_exit(replay: &Replay<'_>) -> Vec<Value> {
    replay
        .client
        .until("the exit", |received| {
            let all: Vec<Value> = notifications(&received.messages).cloned().collect();
            let is_exit = |message: &Value| message["method"] == "process/exited";
            all.iter().any(is_exit).then_some(all)
        })
        .await
}

#[tokio::test]
async fn notifications_say_when_they_were_emitted() {
    let server = unsandboxed_outpost().start().await;
    let millis = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("a time").as_millis()
    };
    let before = millis();
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            → process/spawn {"command":["sh","-c","echo hi"],"processHandle":"h","cwd":"/","streamStdoutStderr":true}
            ← {}
            "#,
        )
        .await;
    let messages = until_exit(&replay).await;
    assert_eq!(messages[0]["method"], "process/outputDelta");
    for message in &messages {
        let emitted = u128::from(message["emittedAtMs"].as_u64().expect("a time"));
        assert!((before..=millis()).contains(&emitted), "{message}");
        let members = message.as_object().expect("an object").len();
        assert_eq!(members, 3, "{message}");
    }
    assert!(replay.response.get("emittedAtMs").is_none());

    let exec = Replay::exec(&server).await;
    let start =
        json!({"processId": "p", "argv": ["true"], "cwd": "file:///", "env": {}, "tty": false});
    exec.client.call("process/start", start).await;
    for message in until_exit(&exec).await {
        assert!(message.get("emittedAtMs").is_none(), "{message}");
    }
}

#[tokio::test]
async fn unwanted_notifications_are_not_sent() {
    let server = unsandboxed_outpost().start().await;
    let mut replay = Replay::connect(&server).await;
    replay
        .run(
            r#"
            → initialize {"clientInfo":{"name":"x","version":"1"},"capabilities":{"experimentalApi":true,"optOutNotificationMethods":["process/outputDelta","fs/changed","nosuch"]}}
            ← {}
            → fs/watch {"watchId":"w","path":"{path}"}
            ← {"path":"{path}"}
            → process/spawn {"command":["sh","-c","echo hi; echo x > {path}/f"],"processHandle":"h","cwd":"/","streamStdoutStderr":true}
            ← {}
            "#,
        )
        .await;
    let messages = until_exit(&replay).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["params"]["exitCode"], 0);
    assert_eq!(messages[0]["params"]["stdout"], "", "it was streamed");
    // Output that is not sent blocks nothing.
    replay
        .run(
            r#"
            → command/exec {"command":["sh","-c","head -c 4000000 /dev/zero | tr '\\0' x"],"processId":"c","streamStdoutStderr":true,"disableOutputCap":true}
            ← {"exitCode":0,"stdout":"","stderr":""}
            "#,
        )
        .await;
    let methods = replay.client.received();
    assert!(
        methods
            .iter()
            .any(|message| message["method"] == "command/exec/outputDelta")
    );
    assert!(
        methods
            .iter()
            .all(|message| message["method"] != "fs/changed")
    );
}

#[tokio::test]
async fn unexpected_messages_are_ignored() {
    let server = outpost().start().await;
    let mut replay = Replay::app(&server).await;
    replay
        .run(
            r#"
            > garbage
            > []
            > {}
            > {"method":"nosuch/notification","params":{}}
            > {"method":"initialized","params":3}
            > {"id":99,"result":{}}
            > {"id":99,"error":{"code":1,"message":"x"}}
            > {"error":{"code":1,"message":"x"}}
            > {"id":null,"method":"fs/readFile","params":{}}
            > {"id":1.5,"method":"fs/readFile","params":{}}
            > {"id":5,"method":3}
            → fs/getMetadata {"path":"/"}
            ← {"isDirectory":true}
            "#,
        )
        .await;
    let answered = replay
        .client
        .until("the responses", |received| Some(received.responses.len()))
        .await;
    assert_eq!(answered, 2, "the handshake and the last request");
    // A request that only this server rejects is answered, under its own id.
    let repeated = r#"{"id":77,"method":"fs/readFile","params":{"path":"/","path":"/"}}"#;
    replay.client.send_text(repeated).await;
    let error = replay.client.response(77).await.expect_err("an error");
    assert!(error.message.contains("repeated key `path`"), "{error:?}");
}

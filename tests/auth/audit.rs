//! Tests what the audit log records, and what it does not.

use std::{fs, os::unix::fs::PermissionsExt as _};

use outpost_testkit::{
    base64,
    deadline::poll_until,
    file_uri, frames,
    http_client::{UPGRADE, get},
    http_test_server::{HttpTestServer, page},
    programs, sh,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::{Directories, app_client};
use crate::outpost;

const PRINCIPALS: &str = "\
    [principals.first]\nscopes = [\"exec\", \"files:read\", \"files:write\", \"http\"]\n\
    [principals.second]\nscopes = [\"exec\"]\n";

/// The lines of the audit log.
fn lines(directories: &Directories) -> Vec<Value> {
    let text = fs::read_to_string(directories.path("audit.log")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parsed = whole.lines().map(serde_json::from_str);
    parsed.map(|line| line.expect("a line of JSON")).collect()
}

/// Waits for a line with these members.
async fn line(directories: &Directories, expected: Value) -> Value {
    let expected = expected.as_object().expect("an object");
    let is_it = |line: &Value| expected.iter().all(|(name, value)| line[name] == *value);
    let what = format!("a line with {expected:?}");
    poll_until(&what, || lines(directories).into_iter().find(is_it)).await
}

#[tokio::test]
async fn events_of_two_principals_are_recorded_without_secrets() {
    let directories = Directories::new();
    let (first, second) = (
        directories.token("first").await,
        directories.token("second").await,
    );
    let server = directories
        .server(PRINCIPALS)
        .args(&["--audit-log", &directories.text("audit.log")])
        .start()
        .await;
    let web = HttpTestServer::start(|request| match &*request.target {
        "/moved?q=QUERYSECRET" => page("302 Found", &["Location: /page?q=QUERYSECRET"], b""),
        _ => page("200 OK", &[], b"BODYSECRET"),
    })
    .await;

    let address = server.address();
    let refused = get(
        address,
        "/",
        &[UPGRADE, &["Authorization: Bearer GUESS"]].concat(),
    )
    .await;
    assert_eq!(refused.status, 401);
    let client = server.connect_with_token(&first).await;
    let session = client.handshake().await["sessionId"].clone();
    let start = sh("one", "cat >/dev/null; exit 3")
        .stdin()
        .env(&[("NAME", "ENVSECRET")])
        .with("limits", json!({"openFiles": 99}));
    client.start(start).await;
    client.write_last("one", "STDINSECRET").await;
    client.closed("one").await;
    client.start(sh("two", "sleep 1000")).await;
    client.signal("two", "terminate").await;
    client.closed("two").await;
    let file = directories.path("outside/new");
    let copy = directories.path("outside/copy");
    let (uri, copy_uri) = (file_uri(&file), file_uri(&copy));
    let written = json!({"path": uri, "dataBase64": base64("FILESECRET")});
    client.call("fs/writeFile", written).await;
    let copied = json!({"sourcePath": uri, "destinationPath": copy_uri});
    client.call("fs/copy", copied).await;
    client.call("fs/remove", json!({"path": uri})).await;
    let url = web.url("/moved?q=QUERYSECRET");
    let url = url.replace("http://", "http://user:URLSECRET@");
    let header = json!([{"name": "authorization", "value": "HEADERSECRET"}]);
    let request = json!({"method": "GET", "url": url, "headers": header, "requestId": "r"});
    client.call("http/request", request).await;
    let proxy = json!({"proxy": {
        "enabled": true, "enableSocks5": false, "enableSocks5Udp": false, "allowUpstreamProxy": false,
        "dangerouslyAllowAllUnixSockets": false, "mode": "full", "unixSockets": null,
        "allowLocalBinding": false, "domains": {"127.0.0.1": "allow"},
    }});
    let url = web.url("/page?q=QUERYSECRET");
    let script = "read url; curl -s -m 20 \"$url\"; curl -s -m 20 http://denied.test/; true";
    let proxied = sh("three", script).stdin().with("networkProxy", proxy);
    client.start(proxied).await;
    client.write_last("three", format!("{url}\n")).await;
    client.closed("three").await;

    let other = app_client(&server, &second).await;
    let exec = json!({"command": ["sh", "-c", "exit 4"], "processId": "c",
        "env": {"OTHER": "ENVSECRET"}, "sandboxPolicy": {"type": "dangerFullAccess"}});
    assert_eq!(other.call("command/exec", exec).await["exitCode"], 4);
    let spawn = json!({"processHandle": "s", "command": ["sleep", "1000"], "cwd": "/tmp"});
    other.call("process/spawn", spawn).await;
    let kill = json!({"processHandle": "s"});
    other.call("process/kill", kill).await;
    other.call_fails("fs/remove", json!({"path": uri})).await;
    other
        .start_fails(sh("none", "true").cwd(&directories.path("missing")))
        .await;
    other.close().await;
    client.close().await;

    let log = &directories;
    let address = |event: Value| event["address"].as_str().expect("an address").to_owned();
    let reason = "invalid websocket bearer token";
    let failed = line(log, json!({"event": "auth_failed", "reason": reason})).await;
    assert!(address(failed).starts_with("127.0.0.1:"));
    let connect = line(log, json!({"event": "connect", "principal": "first"})).await;
    let time = connect["time"].as_str().expect("a time");
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    let id = session.as_str().expect("an id");
    let of_first = |more: Value| {
        let mut expected = json!({
            "principal": "first", "connection": connect["connection"],
            "address": connect["address"], "session": id[..8],
        });
        let members = expected.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        expected
    };
    for expected in [
        json!({"event": "start", "process": "one", "argv": ["/bin/sh", "-c", "cat >/dev/null; exit 3"],
            "cwd": "/tmp", "sandbox": null, "limits": {"openFiles": 99}}),
        json!({"event": "exit", "process": "one", "code": 3, "endedBy": "exit"}),
        json!({"event": "signal", "process": "two", "signal": "terminate", "request": "process/signal"}),
        json!({"event": "exit", "process": "two", "endedBy": "signal"}),
        json!({"event": "write_file", "path": file}),
        json!({"event": "write_file", "path": copy, "source": file}),
        json!({"event": "remove", "path": file}),
        json!({"event": "http", "method": "GET", "host": web.address().to_string()}),
        json!({"event": "exit", "process": "three", "code": 0}),
        json!({"event": "disconnect", "reason": "closed"}),
    ] {
        line(log, of_first(expected)).await;
    }
    let all = lines(log);
    let of_event = |event: &str| {
        let matching = all.iter().filter(move |line| line["event"] == event);
        matching.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_event("http").len(), 2, "a redirect is a request");
    let decided: Vec<_> = of_event("network")
        .iter()
        .map(|line| {
            let decision = &line["decision"];
            format!(
                "{} {} {}",
                line["process"], decision["host"], decision["decision"]
            )
        })
        .collect();
    assert_eq!(
        decided,
        [
            "\"three\" \"127.0.0.1\" \"allow\"",
            "\"three\" \"denied.test\" \"deny\""
        ]
    );
    for expected in [
        json!({"event": "start", "process": "c", "argv": ["sh", "-c", "exit 4"]}),
        json!({"event": "exit", "process": "c", "code": 4}),
        json!({"event": "start", "process": "s"}),
        json!({"event": "signal", "process": "s", "request": "process/kill"}),
        json!({"event": "exit", "process": "s", "endedBy": "terminated"}),
        json!({"event": "forbidden", "request": "fs/remove", "scope": "files:write"}),
        json!({"event": "start", "process": "none"}),
        json!({"event": "exit", "process": "none", "error": "workingDirectory"}),
        json!({"event": "disconnect"}),
    ] {
        let found = line(log, expected.clone()).await;
        if expected["event"] != "disconnect" {
            assert_eq!(found["principal"], "second", "{found}");
        }
    }
    let text = fs::read_to_string(directories.path("audit.log")).expect("a file");
    for secret in [
        "SECRET",
        "GUESS",
        &first,
        &second,
        id,
        &base64("FILESECRET"),
    ] {
        assert!(!text.contains(secret), "{secret} is in\n{text}");
    }
    assert!(text.is_ascii());
    let metadata = fs::metadata(directories.path("audit.log")).expect("a file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn takeover_of_another_session_is_a_signal_by_its_principal() {
    let directories = Directories::new();
    let (first, root) = (
        directories.token("first").await,
        directories.token("root").await,
    );
    let config = "[principals.root]\nscopes = [\"admin\", \"exec\"]\n";
    let server = directories
        .server(config)
        .args(&["--audit-log", &directories.text("audit.log")])
        .start()
        .await;
    let owner = server.connect_with_token(&first).await;
    let session = owner.handshake().await["sessionId"].clone();
    owner.start(sh("p", "sleep 1000")).await;
    let admin = server.client_with_token(&root).await;
    let end = json!({"processId": "p", "sessionId": session});
    admin.call("process/terminate", end).await;
    owner.closed("p").await;
    admin
        .call("session/close", json!({"sessionId": session}))
        .await;
    let prefix = &session.as_str().expect("an id")[..8];
    for request in ["process/terminate", "session/close"] {
        let expected =
            json!({"event": "signal", "principal": "root", "session": prefix, "request": request});
        line(&directories, expected).await;
    }
    let expected = json!({"event": "exit", "principal": "first", "process": "p"});
    assert_eq!(line(&directories, expected).await["session"], prefix);
}

#[tokio::test]
async fn exits_of_processes_that_the_second_signal_kills_are_recorded() {
    let directories = Directories::new();
    let log = directories.text("audit.log");
    let mut server = outpost().args(&["--audit-log", &log]).start().await;
    let client = server.client().await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.wait_output("p", "ready").await;
    server.signal(Signal::TERM);
    client.connection_end().await;
    server.signal(Signal::TERM);
    server.wait().await;
    let recorded = lines(&directories);
    let is_exit = |line: &Value| line["event"] == "exit" && line["process"] == "p";
    assert!(recorded.iter().any(is_exit), "{recorded:?}");
}

#[tokio::test]
async fn network_and_refused_roots_are_recorded_as_they_are_enforced() {
    let directories = Directories::new();
    let token = directories.token("bound").await;
    let config = format!(
        "[network_policies.local]\nallow = [\"a.test\"]\n\
         [principals.bound]\nnetwork = \"local\"\nroots = [\"{}\"]\n",
        directories.text("ws")
    );
    let server = directories
        .server(&config)
        .args(&["--audit-log", &directories.text("audit.log")])
        .start()
        .await;
    let client = server.client_with_token(&token).await;
    client
        .run(sh("p", "true").cwd(&directories.path("ws")))
        .await;
    let sandbox = json!({"fileSystem": {"type": "unrestricted"}, "network": "managed"});
    let start = line(&directories, json!({"event": "start", "process": "p"})).await;
    assert_eq!(start["sandbox"], sandbox);
    let root = json!({"id": "r", "path": file_uri(&directories.path("outside"))});
    let found = client
        .call("capabilityRoots/discoverV1", json!({"roots": [root]}))
        .await;
    assert!(found["roots"][0]["error"].is_string(), "{found}");
    let expected = json!({"event": "forbidden", "request": "capabilityRoots/discoverV1"});
    line(&directories, expected).await;
}

#[tokio::test]
async fn start_that_is_cancelled_has_one_exit() {
    let directories = Directories::new();
    let log = directories.text("audit.log");
    let mut server = outpost().args(&["--audit-log", &log]).start().await;
    let client = server.client().await;
    for n in 0..60 {
        let id = format!("p{n}");
        let (start, terminate) = (client.fresh_id(), client.fresh_id());
        let both = [
            json!({"id": start, "method": "process/start", "params": {
                "processId": id, "argv": ["/bin/sleep", "1000"], "cwd": "file:///", "env": {},
            }}),
            json!({"id": terminate, "method": "process/terminate", "params": {"processId": id}}),
        ];
        let frames = both
            .iter()
            .map(|message| frames::text(&message.to_string()));
        client.send_frames(frames.collect()).await;
        client.response(terminate).await.expect("a response");
        let _ = client.response(start).await;
    }
    server.signal(Signal::TERM);
    server.wait().await;
    let recorded = lines(&directories);
    let count = |event: &str, id: &Value| {
        let is_it = |line: &&Value| line["event"] == event && line["process"] == *id;
        recorded.iter().filter(is_it).count()
    };
    for n in 0..60 {
        let id = format!("p{n}").into();
        assert_eq!(count("exit", &id), count("start", &id), "{id}");
    }
}

#[tokio::test]
async fn sighup_opens_the_file_again() {
    let directories = Directories::new();
    let token = directories.token("first").await;
    let server = directories
        .server(PRINCIPALS)
        .args(&["--audit-log", &directories.text("audit.log")])
        .start()
        .await;
    let client = server.client_with_token(&token).await;
    client.run(sh("before", "true")).await;
    line(&directories, json!({"event": "exit", "process": "before"})).await;
    let old = directories.path("audit.log.1");
    fs::rename(directories.path("audit.log"), &old).expect("renamed");
    client.run(sh("between", "true")).await;
    server.signal(Signal::HUP);
    let new = directories.path("audit.log");
    poll_until("the new file", || new.exists().then_some(())).await;
    client.run(sh("after", "true")).await;
    line(&directories, json!({"event": "exit", "process": "after"})).await;
    let old = fs::read_to_string(old).expect("a file");
    assert!(
        old.contains("\"before\"") && old.contains("\"between\"") && !old.contains("\"after\"")
    );
    let error = client.call_fails("fs/readFile", json!({"path": file_uri(&new)}));
    let error = error.await;
    assert!(
        error.parts().1.contains("secret of the server"),
        "{error:?}"
    );
}

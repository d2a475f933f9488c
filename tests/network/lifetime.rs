//! When the proxy of a process starts and ends.

use outpost_testkit::http_test_server::{HttpTestServer, page};
use outpost_testkit::sh;
use serde_json::json;

use super::{managed, proxy, sandbox};
use crate::ready;

#[tokio::test]
async fn proxy_lives_until_the_process_is_closed() {
    let (_server, client) = ready().await;
    let web = HttpTestServer::start(|_| page("200 OK", &[], b"hello\n")).await;
    let url = web.url("/");
    // The background child keeps the output open after the exit, until the fifo has a writer.
    let fifo = tempfile::tempdir_in("/tmp").expect("a directory");
    let path = fifo.path().join("go");
    let path = path.display();
    let script = format!("mkfifo {path}; (cat {path}; curl -s -m 10 {url}) & exit 0");
    let allowed = proxy(json!({"127.0.0.1": "allow"}), json!({}));
    client.start(managed("p", &script, allowed)).await;
    let log = client.exited("p").await;
    assert_eq!(log.code(), 0);
    client.run(sh("go", &format!("echo go > {path}"))).await;
    let text = client.closed("p").await.text();
    assert_eq!(text, "go\nhello\n");
}

#[tokio::test]
async fn process_that_outlives_its_close_has_no_network() {
    let (_server, client) = ready().await;
    let web = HttpTestServer::start(|_| page("200 OK", &[], b"hello\n")).await;
    let url = web.url("/");
    let dir = tempfile::tempdir_in("/tmp").expect("a directory");
    let (go, result) = (dir.path().join("go"), dir.path().join("result"));
    let (go, result) = (go.display(), result.display());
    // The background child closes the output, so that the process is closed at once.
    let script = format!(
        "mkfifo {go} {result}; (cat {go} >/dev/null; curl -s -m 10 {url} >/dev/null; echo $? > {result}) \
         >/dev/null 2>&1 & exit 0"
    );
    let allowed = proxy(json!({"127.0.0.1": "allow"}), json!({}));
    client.start(managed("p", &script, allowed)).await;
    client.closed("p").await;
    let log = client
        .run(sh("go", &format!("echo go > {go}; cat {result}")))
        .await;
    assert_eq!(log.text(), "7\n", "cannot connect");
    assert_eq!(web.count(), 0);
}

#[tokio::test]
async fn failed_start_leaves_no_proxy() {
    let (server, client) = ready().await;
    let fail = async |id: &str| {
        let proxied = json!({"proxy": proxy(json!({}), json!({}))});
        for sandbox in [None, Some(sandbox("enabled"))] {
            let mut start = sh(id, "true")
                .with("enforceManagedNetwork", true)
                .with("networkProxy", proxied.clone())
                .with("argv", json!(["/nonexistent"]));
            if let Some(sandbox) = sandbox {
                start = start.with("sandbox", sandbox);
            }
            let error = client.start_fails(start).await;
            assert_eq!(error.code, -32603, "{}", error.message);
        }
    };
    // The first starts open descriptors that the server keeps.
    fail("first").await;
    let before = server.stats().open_files();
    for id in ["a", "b", "c"] {
        fail(id).await;
    }
    assert_eq!(server.stats().open_files(), before);
}

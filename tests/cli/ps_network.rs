//! Tests `outpost ps --net`.

use outpost_testkit::http_test_server::{HttpTestServer, page};
use outpost_testkit::{CommandOutput, TestUser, Transport};
use serde_json::Value;

use super::new_user;
use crate::outpost;

/// Starts a detached script that requests an allowed and a denied URL, waits for its end, and returns
/// its id.
async fn detach(user: &TestUser, on: &[&str], web: &HttpTestServer) -> String {
    let host = format!("localhost:{}", web.address().port());
    let script = format!("curl -s -o /dev/null http://{host}/ http://denied.test/; true");
    let flags = ["run", "--detach", "--allow-host", &*host];
    let args = [&flags[..], on, &["--", "sh", "-c", &script]].concat();
    let id = user.output(&args).await.trim_end().to_owned();
    user.output(&[&["logs", "-f", &*id], on].concat()).await;
    id
}

fn check_table(table: &str, port: u16) {
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    let words = lines
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let words: Vec<_> = words.collect();
    let head = "TIME DECISION HOST PORT PROTOCOL SENT RECEIVED REASON";
    assert_eq!(words[0].join(" "), head);
    let allowed = format!("allow localhost {port} http");
    assert_eq!(words[1][1..5].join(" "), allowed);
    assert!(lines[1].ends_with("  allow"), "{table}");
    assert_eq!(
        words[2][1..].join(" "),
        "deny denied.test 80 http - - not_allowed"
    );
    let column = |line: &str, word: &str| line.find(word).expect("a column");
    assert_eq!(column(lines[0], "HOST"), column(lines[2], "denied.test"));
    assert_eq!(column(lines[0], "REASON"), column(lines[2], "not_allowed"));
}

fn check_error(ended: &CommandOutput, message: &str) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains(message), "{ended:?}");
}

#[tokio::test]
async fn allowed_and_denied_hosts_are_shown() {
    let user = new_user();
    let web = HttpTestServer::start(|_| page("200 OK", &[], b"hello")).await;
    let port = web.address().port();
    let server = outpost().on(Transport::Unix).start().await;
    let socket = format!("unix://{}", server.socket_path().display());
    let websocket = outpost().start().await;
    let url = websocket.urls()[0].clone();
    for on in [vec![], vec!["--on", &*socket], vec!["--on", &*url]] {
        let id = detach(&user, &on, &web).await;
        let ps = [&["ps", "--net", &id[..4]], &on[..]].concat();
        check_table(&user.output(&ps).await, port);
        let json = user.output(&[&ps[..], &["--json"]].concat()).await;
        let network: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(network["decisionCount"], 2, "{json}");
        assert_eq!(network["decisions"][0]["host"], "localhost", "{json}");
        assert_eq!(network["decisions"][1]["decision"], "deny", "{json}");
    }
    user.stop().await;
}

#[tokio::test]
async fn process_without_a_managed_network_is_named() {
    let user = new_user();
    check_error(&user.run(&["ps", "--net", "p"]).await, "no process p: ");
    let id = user.detach("true").await;
    let message = format!("cannot show the network of {id}: process {id} has no managed network");
    check_error(&user.run(&["ps", "--net", &id]).await, &message);
    let json = user.run(&["ps", "--json", "--net", &id]).await;
    check_error(&json, &message);
    let unknown = user.run(&["ps", "--net", "nosuch"]).await;
    check_error(&unknown, "no process nosuch; `outpost ps` lists");
    let both = user.run(&["ps", "--all", "--net", &id]).await;
    assert_eq!(both.code, Some(2), "{both:?}");
    user.stop().await;
}

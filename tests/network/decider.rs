//! The client decides about targets that no pattern allows: `network/policyRequest`.

use std::time::Duration;

use outpost_testkit::{Client, deadline};
use serde_json::{Value, json};

use super::{Internet, asking, decisions, managed, output, proxy, wait_decision};

/// Waits for question `number`, counted from 1.
async fn question(client: &Client, number: usize) -> Value {
    let is_question =
        |message: &&std::sync::Arc<Value>| message["method"] == "network/policyRequest";
    client
        .until("a question", |received| {
            let mut questions = received.messages.iter().filter(is_question);
            questions
                .nth(number - 1)
                .map(|message| Value::clone(message))
        })
        .await
}

fn get(url: &str) -> String {
    format!("curl -sS -m 60 {url}")
}

#[tokio::test]
async fn client_decides_about_unlisted_and_reviewed_targets() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let more = json!({"reviewDomains": ["sub.allowed.test"]});
    let proxy = proxy(
        json!({"**.allowed.test": "allow", "denied.test": "deny"}),
        more,
    );
    let script = [
        "http://other.test/",
        "http://sub.allowed.test/",
        "http://allowed.test/",
        "http://denied.test/",
        "http://127.0.0.1/",
    ]
    .map(get)
    .join("; echo; ");
    let start = asking(managed("p", &script, proxy.clone()), proxy, 30_000);
    client.start(start).await;
    let first = question(client, 1).await;
    let request = json!({"protocol": "http", "host": "other.test", "port": 80});
    let params = json!({"processId": "p", "request": request});
    assert_eq!(
        first,
        json!({"id": 1, "method": "network/policyRequest", "params": params})
    );
    client
        .send(&json!({"id": 1, "result": {"decision": {"type": "allow"}}}))
        .await;
    let second = question(client, 2).await;
    assert_eq!(second["params"]["request"]["host"], "sub.allowed.test");
    let deny = json!({"type": "deny", "reason": "reviewer said no"});
    client
        .send(&json!({"id": 2, "result": {"decision": deny, "more": 1}}))
        .await;
    let text = client.closed("p").await.text();
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "hello from 93.184.216.35 as other.test");
    assert!(lines[1].contains("\"reason\":\"reviewer said no\"") && lines[1].contains("decider"));
    assert_eq!(lines[2], "hello from 93.184.216.34 as allowed.test");
    assert!(lines[3].contains("\"reason\":\"denied\""));
    assert!(lines[4].contains("\"reason\":\"not_allowed_local\""));
    wait_decision(
        client,
        "p",
        "deny baseline_policy not_allowed_local http 127.0.0.1 80",
    )
    .await;
    assert_eq!(
        decisions(client, "p"),
        [
            "allow decider not_allowed http other.test 80",
            "deny decider reviewer said no http sub.allowed.test 80",
            "allow baseline_policy allow http allowed.test 80",
            "deny baseline_policy denied http denied.test 80",
            "deny baseline_policy not_allowed_local http 127.0.0.1 80",
        ]
    );
}

#[tokio::test]
async fn permission_of_the_client_does_not_reach_private_addresses() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let proxy = proxy(json!({}), json!({}));
    let start = managed("p", &get("http://private.test/"), proxy.clone());
    client.start(asking(start, proxy, 30_000)).await;
    question(client, 1).await;
    client
        .send(&json!({"id": 1, "result": {"decision": {"type": "allow"}}}))
        .await;
    let text = client.closed("p").await.text();
    assert!(text.contains("not_allowed_local"), "{text}");
}

#[tokio::test]
async fn other_answers_refuse() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let proxy = proxy(json!({}), json!({}));
    for (number, (answer, decision)) in [
        (
            json!({"result": {"decision": {"type": "ask", "reason": "later"}}}),
            "ask decider later",
        ),
        (
            json!({"result": {"decision": {"type": "deny"}}}),
            "deny decider not_allowed",
        ),
        (
            json!({"result": {"decision": {"type": "maybe"}}}),
            "deny decider not_allowed",
        ),
        (json!({"result": null}), "deny decider not_allowed"),
        (
            json!({"result": {"decision": "allow"}}),
            "deny decider not_allowed",
        ),
        (
            json!({"result": {"decision": {"type": "deny", "reason": "x".repeat(1025)}}}),
            "deny decider not_allowed",
        ),
        (
            json!({"error": {"code": -32601, "message": "unknown"}}),
            "deny decider not_allowed",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("p{number}");
        let start = managed(&id, &get("http://other.test/"), proxy.clone());
        client.start(asking(start, proxy.clone(), 30_000)).await;
        let asked = question(client, number + 1).await;
        let mut message = answer;
        message["id"] = asked["id"].clone();
        client.send(&message).await;
        let text = client.closed(&id).await.text();
        assert!(text.contains("\"status\":\"blocked\""), "{text}");
        wait_decision(client, &id, &format!("{decision} http other.test 80")).await;
    }
    client.check_alive().await;
}

#[tokio::test]
async fn silent_client_refuses_after_its_timeout_and_grace() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let proxy = proxy(json!({}), json!({}));
    let start = managed("p", &get("http://other.test/"), proxy.clone());
    let before = std::time::Instant::now();
    client.start(asking(start, proxy, 1000)).await;
    question(client, 1).await;
    let text = client.closed("p").await.text();
    assert!(text.contains("\"source\":\"decider\""), "{text}");
    assert!(
        before.elapsed() >= Duration::from_secs(6),
        "{:?}",
        before.elapsed()
    );
    // A late answer is ignored.
    client
        .send(&json!({"id": 1, "result": {"decision": {"type": "allow"}}}))
        .await;
    client.check_alive().await;
}

#[tokio::test]
async fn terminated_process_and_lost_connection_refuse() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let proxy = proxy(json!({}), json!({}));
    // The program survives the request to end, to see the refusal.
    let script = format!("trap '' HUP TERM; {}", get("http://other.test/"));
    let start = managed("p", &script, proxy.clone());
    client.start(asking(start, proxy.clone(), 600_000)).await;
    question(client, 1).await;
    client.terminate_with("p", json!({"graceMs": 30_000})).await;
    wait_decision(client, "p", "deny decider not_allowed http other.test 80").await;
    client.closed("p").await;

    let session = client.call("session/list", json!({})).await;
    let session = session["sessions"][0]["sessionId"].clone();
    let dir = tempfile::tempdir_in("/tmp").expect("a directory");
    let fifo = dir.path().join("go");
    let fifo = fifo.display();
    let script = format!(
        "mkfifo {fifo}; {0}; cat {fifo}; {0}",
        get("http://other.test/")
    );
    let start = managed("q", &script, proxy.clone());
    client.start(asking(start, proxy, 600_000)).await;
    question(client, 2).await;
    // Another connection takes over: the question of the first one is refused, and the next one is asked
    // there, with ids from 1.
    let second = internet.server.connect().await;
    second.take_over(&session).await;
    let write = format!("echo > {fifo}");
    second.run(outpost_testkit::sh("go", &write)).await;
    let asked = question(&second, 1).await;
    assert_eq!(asked["id"], 1);
    second
        .send(&json!({"id": 1, "result": {"decision": {"type": "allow"}}}))
        .await;
    let page = deadline::expect_soon("the output", async {
        second.read("q", json!({"waitMs": 10_000})).await;
        second
            .until("the end", |received| {
                let log = received.event_logs.get("q")?;
                log.is_closed().then(|| log.text())
            })
            .await
    })
    .await;
    assert!(page.contains("hello from 93.184.216.35"), "{page}");
}

#[tokio::test]
async fn questions_in_flight_are_bounded() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let proxy = proxy(json!({}), json!({}));
    let script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); \
                  (exec 3<>/dev/tcp/127.0.0.1/43128; printf 'GET http://other.test/ HTTP/1.1\\r\\nHost: \
                  other.test\\r\\n\\r\\n' >&3; read -r line <&3; echo \"$line\") & done; wait";
    let start =
        managed("p", script, proxy.clone()).with("argv", json!(["/bin/bash", "-c", script]));
    client.start(asking(start, proxy, 600_000)).await;
    question(client, 256).await;
    client
        .until("refusals", |received| {
            let log = received.event_logs.get("p")?;
            (log.text().matches(" 403 ").count() >= 44).then_some(())
        })
        .await;
    let asked = client.received();
    let asked = asked
        .iter()
        .filter(|message| message["method"] == "network/policyRequest");
    assert_eq!(asked.count(), 256);
    for id in 1..=256 {
        client
            .send(&json!({"id": id, "result": {"decision": {"type": "allow"}}}))
            .await;
    }
    let text = client.closed("p").await.text();
    assert_eq!(text.matches(" 200 ").count(), 256);
    assert_eq!(text.matches(" 403 ").count(), 44);
    output(
        client,
        managed("q", "true", super::proxy(json!({}), json!({}))),
    )
    .await;
}

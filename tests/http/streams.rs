//! Bodies that come piece by piece.

use outpost_testkit::{sh, web};
use serde_json::json;

use super::{asking, get, refusal, so_far, streamed, streaming, text};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn the_answer_is_first_and_the_end_is_last() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let web = web::Web::start(|_| web::page("200 OK", &["X-A: b"], &[7; 300_000])).await;
        let id = client
            .request("http/request", streaming(&web.url("/"), "s"))
            .await;
        let result = client.answer(id).await.expect("a response");
        assert_eq!(
            (&result["status"], &result["bodyBase64"]),
            (&json!(200), &json!(""))
        );
        let story = streamed(client, "s").await;
        assert_eq!((story.bytes, story.error), (vec![7; 300_000], None));
        let received = client.received();
        let place = |is: &dyn Fn(&serde_json::Value) -> bool| {
            received.iter().position(|message| is(message)).expect("it")
        };
        let answer = place(&|message| message["id"] == id);
        let first = place(&|message| message["params"]["requestId"] == "s");
        assert!(answer < first);
        // What is over can be asked for again.
        let again = client
            .call("http/request", streaming(&web.url("/"), "t"))
            .await;
        assert_eq!(again["status"], 200);
        streamed(client, "t").await;
    })
    .await;
}

#[tokio::test]
async fn pieces_come_when_they_are_there() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| {
        vec![
            web::head("200 OK", &["Transfer-Encoding: chunked"]),
            web::Say::Wait,
            web::chunk(b"one"),
            web::Say::Wait,
            web::chunk(b"two"),
            web::chunk(b""),
        ]
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    web.go_on();
    assert_eq!(so_far(&client, "s", 1).await, b"one");
    web.go_on();
    let story = streamed(&client, "s").await;
    assert_eq!((story.pieces, story.error), (vec![3, 3], None));
}

#[tokio::test]
async fn an_empty_body_has_only_an_end() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| web::page("204 No Content", &[], b"")).await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    assert_eq!(streamed(&client, "s").await, super::Streamed::default());
}

#[tokio::test]
async fn one_that_breaks_off_says_so() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| {
        let head = web::head("200 OK", &["Content-Length: 10"]);
        vec![head, web::Say::Bytes(b"five.".to_vec()), web::Say::Close]
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    let story = streamed(&client, "s").await;
    assert_eq!(story.bytes, b"five.");
    let error = story.error.expect("an error");
    assert!(error.starts_with("the body broke off: "), "{error}");
}

#[tokio::test]
async fn a_name_is_used_once_at_a_time() {
    let (server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/never" => vec![web::Say::Silence],
        "/failing" => vec![web::Say::Close],
        _ => vec![
            web::head("200 OK", &["Content-Length: 1"]),
            web::Say::Wait,
            web::Say::Bytes(vec![b'.']),
        ],
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    client
        .request("http/request", streaming(&web.url("/never"), "n"))
        .await;
    for id in ["s", "n"] {
        let words = format!("http/request requestId {id} is in use by a stream");
        for params in [
            streaming(&web.url("/"), id),
            asking(&web.url("/"), json!({"requestId": id})),
        ] {
            assert_eq!(refusal(&client, params).await.parts(), (-32602, &*words));
        }
    }
    // Names are a connection's own.
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    web.go_on();
    streamed(&client, "s").await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    // One that failed is free as well.
    for _ in 0..2 {
        let error = refusal(&client, streaming(&web.url("/failing"), "f")).await;
        assert_eq!(error.code, -32603);
    }
    // Requests that aren't streamed have no use for theirs.
    let same = || asking(&web.url("/never"), json!({"requestId": "same"}));
    let first = client.request("http/request", same()).await;
    let second = client.request("http/request", same()).await;
    client.is_alive().await;
    assert!(!client.is_answered(first) && !client.is_answered(second));
}

#[tokio::test]
async fn a_connection_that_goes_ends_its_streams_and_no_others() {
    let (server, client) = ready().await;
    let web = web::Web::start(|_| {
        let head = web::head("200 OK", &["Content-Length: 10"]);
        vec![
            head,
            web::Say::Bytes(b"five.".to_vec()),
            web::Say::Wait,
            web::Say::Bytes(b"five.".to_vec()),
        ]
    })
    .await;
    let flood = web::Web::start(|_| {
        vec![
            web::head("200 OK", &["Content-Length: 100000000"]),
            web::Say::Dots(100_000_000),
        ]
    })
    .await;
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    client
        .call("http/request", streaming(&flood.url("/"), "s"))
        .await;
    so_far(&client, "s", 1).await;
    client.cut().await;
    flood.all_over().await;
    web.go_on();
    assert_eq!(streamed(&other, "s").await.bytes, b"five.five.");
}

#[tokio::test]
async fn who_acknowledges_gets_a_window_and_no_more() {
    let (_server, client) = ready().await;
    let size = 8_000_000;
    let web = web::Web::start(move |_| {
        let length = format!("Content-Length: {size}");
        vec![web::head("200 OK", &[&length]), web::Say::Dots(size)]
    })
    .await;
    let mut params = streaming(&web.url("/"), "s");
    params["acked"] = json!(true);
    client.call("http/request", params).await;
    let got = so_far(&client, "s", 256 * 1024).await;
    // What was asked behind it is answered, and the body has not gone on.
    client.run(sh("p", "echo hello")).await;
    assert!(got.len() < 320 * 1024, "{}", got.len());
    assert_eq!(so_far(&client, "s", 1).await.len(), got.len());
    let mut acked = 0;
    let story = loop {
        let (last, story) = client
            .until("more to acknowledge", |seen| {
                let deltas = seen
                    .messages
                    .iter()
                    .filter(|message| message["params"]["requestId"] == "s");
                let last = deltas
                    .filter_map(|delta| delta["params"]["seq"].as_u64())
                    .max()?;
                (last > acked).then(|| (last, super::story(&seen.messages, "s")))
            })
            .await;
        if let Some(story) = story {
            break story;
        }
        acked = last;
        client
            .notify("http/request/ack", json!({"requestId": "s", "seq": acked}))
            .await;
    };
    assert_eq!((story.bytes.len() as u64, story.error), (size, None));
    // Nobody is there to hear this, and nobody minds.
    client
        .notify("http/request/ack", json!({"requestId": "s", "seq": 1}))
        .await;
    client.is_alive().await;
}

#[tokio::test]
async fn what_is_not_wanted_any_more_ends() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/never" => vec![web::Say::Silence],
        _ => vec![
            web::head("200 OK", &["Content-Length: 100000000"]),
            web::Say::Dots(100_000_000),
        ],
    })
    .await;
    let mut params = streaming(&web.url("/"), "s");
    params["acked"] = json!(true);
    client.call("http/request", params).await;
    so_far(&client, "s", 256 * 1024).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s"}))
        .await;
    let story = streamed(&client, "s").await;
    assert_eq!(story.error.as_deref(), Some("it was cancelled"));
    web.all_over().await;
    let id = client
        .request("http/request", streaming(&web.url("/never"), "s"))
        .await;
    web.asked(1).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s"}))
        .await;
    let error = client.answer(id).await.expect_err("an error");
    assert_eq!(
        error.parts(),
        (-32603, "http/request failed: it was cancelled")
    );
    web.all_over().await;
}

#[tokio::test]
async fn nor_is_what_would_come_in_one_piece() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/never" => vec![web::Say::Silence],
        _ => vec![
            web::head("200 OK", &["Content-Length: 100"]),
            web::Say::Bytes(b"half".to_vec()),
            web::Say::Silence,
        ],
    })
    .await;
    // Their names needn't differ, and then nobody can tell them apart.
    let mut asked = Vec::new();
    for (path, name) in [("/never", "r1"), ("/half", "r1"), ("/never", "r2")] {
        let params = asking(&web.url(path), json!({"requestId": name}));
        asked.push(client.request("http/request", params).await);
        web.asked(asked.len() - 1).await;
    }
    let words = "http/request failed: it was cancelled";
    for (name, ended) in [("r1", &asked[..2]), ("r2", &asked[2..])] {
        client
            .notify("http/request/cancel", json!({"requestId": name}))
            .await;
        for id in ended {
            let error = client.answer(*id).await.expect_err("an error");
            assert_eq!(error.parts(), (-32603, words));
        }
        if name == "r1" {
            // The other goes on.
            web.left(1).await;
        }
    }
    web.all_over().await;
}

#[tokio::test]
async fn a_stream_delays_nothing_else() {
    let (_server, client) = ready().await;
    let size = 30_000_000;
    let web = web::Web::start(move |asked| match &*asked.target {
        "/small" => web::page("200 OK", &[], b"small"),
        _ => {
            let length = format!("Content-Length: {size}");
            vec![web::head("200 OK", &[&length]), web::Say::Dots(size)]
        }
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    // All of these come between its pieces.
    client.run(sh("p", "echo hello")).await;
    assert_eq!(text(&get(&client, &web.url("/small")).await), "small");
    let over = super::story(&client.received(), "s").is_some();
    assert!(!over, "the body was over before anything else came");
    assert_eq!(streamed(&client, "s").await.bytes.len() as u64, size);
}

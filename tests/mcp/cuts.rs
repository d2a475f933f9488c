//! Connections that are cut when a server was asked and its answer is on the way.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use outpost_client::{Local, LocalOptions, Remote, RemoteOptions};
use outpost_mcp::{
    Ensemble, ExecutorLauncher, Launchers, Limits, LocalLauncher, ServerConfig,
    model::{CallToolResult, ContentBlock},
};
use outpost_testkit::mcp::Wiretap;
use outpost_testkit::{Direction, Link, patience};
use serde_json::{Value, json};

use super::{Host, everything, waiting};
use crate::outpost;

/// Long enough to be on the way for a while.
const LARGE: usize = 3 * 1024 * 1024;

/// A connection, and what the server behind it is told.
struct Line<'a> {
    link: &'a Link,
    tap: &'a Wiretap,
}

impl Line<'_> {
    /// Waits for an answer, of which nothing can come before the connection is cut: the server was
    /// asked by then, and what it has said is lost on the way.
    async fn cut_before<T>(&self, method: &str, asked: impl Future<Output = T>) -> T {
        self.link.stall(Direction::ToClient);
        self.cut(method, asked).await
    }

    /// Waits for an answer that takes many seconds, and is cut off when it has begun.
    async fn cut_within<T>(&self, method: &str, asked: impl Future<Output = T>) -> T {
        let much_less = u32::try_from(LARGE / 20).expect("it is small");
        self.link.throttle(Direction::ToClient, much_less);
        self.cut(method, asked).await
    }

    async fn cut<T>(&self, method: &str, asked: impl Future<Output = T>) -> T {
        let before = self.tap.count(method);
        let heard = || (self.tap.count(method) > before).then_some(());
        let mut asked = pin!(asked);
        tokio::select! {
            _ = &mut asked => panic!("{method} was answered in spite of everything"),
            () = patience::seen(method, heard) => {}
        }
        self.link.cut().await;
        self.link.open();
        patience::soon("an answer", asked).await
    }
}

#[tokio::test]
async fn a_host_behind_the_proxy_notices_nothing() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let message = "0123456789abcdef".repeat(LARGE / 16);
    for (command, image, large, uri, text) in [
        (
            everything(),
            "get-tiny-image",
            json!({"name": "echo", "arguments": {"message": message}}),
            None,
            format!("Echo: {message}"),
        ),
        (
            waiting(),
            "picture",
            json!({"name": "large", "arguments": {"size": LARGE}}),
            Some("waiting://note"),
            message.clone(),
        ),
    ] {
        let tap = Wiretap::new();
        let mut host = Host::start(&["--on", link.url()], &tap.on(&command));
        host.shake_hands().await;
        let line = Line {
            link: &link,
            tap: &tap,
        };
        let mut ask = async |method, params| {
            // What was said before has arrived when this is answered.
            host.call("resources/templates/list", json!({})).await;
            let answer = line.cut_before(method, host.call(method, params)).await;
            assert_eq!(answer.get("error"), None, "{answer}");
            answer["result"].clone()
        };
        let tools = ask("tools/list", json!({})).await;
        assert!(tools["tools"].as_array().is_some_and(|all| all.len() > 4));
        let resources = ask("resources/list", json!({})).await;
        let first = resources["resources"][0]["uri"].clone();
        assert!(uri.is_none_or(|uri| first == uri), "{resources}");
        let read = ask("resources/read", json!({"uri": first})).await;
        assert_eq!(read["contents"][0]["uri"], first, "{read}");
        let shown = ask("tools/call", json!({"name": image})).await;
        let blocks = shown["content"].as_array().expect("a list");
        let is_png = |block: &Value| {
            let data = block["data"].as_str().unwrap_or_default();
            block["type"] == "image" && data.starts_with("iVBORw0KGgo")
        };
        assert!(blocks.iter().any(is_png), "{shown}");
        let answer = host.call("tools/call", large);
        let answer = line.cut_within("tools/call", answer).await;
        let words = &answer["result"]["content"][0]["text"];
        assert!(*words == text, "another text");
        assert_eq!(host.close().await.status.code(), Some(0));
        // Asking a second time would be to be noticed as well.
        assert_eq!(tap.count("tools/call"), 2);
    }
}

fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text), ..] => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

#[tokio::test]
async fn our_own_client_notices_nothing() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let options = RemoteOptions::default();
    let there = Remote::connect(link.url(), options).await.expect("a place");
    let here = Local::new(LocalOptions::default()).expect("a place");
    let launchers = Launchers {
        local: Arc::new(LocalLauncher::new(Arc::new(here))),
        remote: Some(Arc::new(ExecutorLauncher::new(Arc::new(there)))),
    };
    let message = "0123456789abcdef".repeat(LARGE / 16);
    for (command, image, large, arguments, expected) in [
        (
            everything(),
            "get-tiny-image",
            "echo",
            json!({"message": message}),
            format!("Echo: {message}"),
        ),
        (
            waiting(),
            "picture",
            "large",
            json!({"size": LARGE}),
            message.clone(),
        ),
    ] {
        let tap = Wiretap::new();
        let command = tap.on(&command);
        let (program, args) = (&command[0], &command[1..]);
        let config = json!({"command": program, "args": args, "environment": "remote"});
        let config = ServerConfig::read("one", &config).expect("it makes sense");
        let servers = BTreeMap::from([("one".to_owned(), config)]);
        let ensemble = Ensemble::start(servers, &launchers, &Limits::default());
        patience::soon("the server", ensemble.settled()).await;
        let line = Line {
            link: &link,
            tap: &tap,
        };
        // What was said before has arrived when this is answered.
        let arrived = async || {
            let templates = ensemble.resource_templates("one");
            drop(templates.await.expect("a list"));
        };

        let tools = line.cut_before("tools/list", ensemble.tools("one")).await;
        assert!(tools.expect("a list").len() > 4);
        arrived().await;
        let resources = ensemble.resources("one");
        let resources = line.cut_before("resources/list", resources).await;
        let uri = resources.expect("a list")[0].uri.clone();
        arrived().await;
        let read = ensemble.read_resource("one", &uri);
        let read = line.cut_before("resources/read", read).await;
        assert_eq!(read.expect("it can be read").contents.len(), 1);
        arrived().await;
        let shown = ensemble.call("one", image, serde_json::Map::new(), None);
        let shown = line.cut_before("tools/call", shown).await;
        let is_png = |block: &ContentBlock| matches!(block, ContentBlock::Image(image) if image.data.starts_with("iVBORw0KGgo"));
        let shown = shown.expect("a picture");
        assert!(shown.content.iter().any(is_png), "{shown:?}");
        let arguments = arguments.as_object().expect("an object").clone();
        arrived().await;
        let answer = ensemble.call("one", large, arguments, None);
        let answer = line.cut_within("tools/call", answer).await;
        assert!(
            text(&answer.expect("an answer")) == expected,
            "another text"
        );
        assert_eq!(tap.count("tools/call"), 2);
        patience::soon("its end", ensemble.close()).await;
    }
}

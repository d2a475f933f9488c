//! Tests connections that are cut after an MCP request, before or within its response.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use outpost_client::{Executor, LocalExecutor, LocalOptions, RemoteExecutor, RemoteOptions};
use outpost_mcp::{
    Executors, Limits, ServerConfig, ServerPool,
    model::{CallToolResult, ContentBlock},
};
use outpost_testkit::mcp_server::StdinRecorder;
use outpost_testkit::{Direction, FaultyLink, deadline};
use serde_json::{Value, json};

use super::{Host, everything, waiting};
use crate::outpost;

/// Large enough to take many seconds on the throttled link.
const LARGE: usize = 3 * 1024 * 1024;

/// A link, and a recorder of the requests that reach the server behind it.
struct CutLink<'a> {
    link: &'a FaultyLink,
    recorder: &'a StdinRecorder,
}

impl CutLink<'_> {
    /// Cuts the link after the server got the request and before any byte of the response arrived,
    /// then waits for the response.
    async fn cut_before<T>(&self, method: &str, request: impl Future<Output = T>) -> T {
        self.link.stall(Direction::ToClient);
        self.cut(method, request).await
    }

    /// Cuts the link within a long response, then waits for the response.
    async fn cut_within<T>(&self, method: &str, request: impl Future<Output = T>) -> T {
        let much_less = u32::try_from(LARGE / 20).expect("it is small");
        self.link.throttle(Direction::ToClient, much_less);
        self.cut(method, request).await
    }

    async fn cut<T>(&self, method: &str, request: impl Future<Output = T>) -> T {
        let before = self.recorder.count(method);
        let arrived = || (self.recorder.count(method) > before).then_some(());
        let mut request = pin!(request);
        tokio::select! {
            _ = &mut request => panic!("{method} got a response before the cut"),
            () = deadline::poll_until(method, arrived) => {}
        }
        self.link.cut().await;
        self.link.open();
        deadline::expect_soon("a response", request).await
    }
}

/// A server, and how to get texts and pictures from it.
struct Case {
    command: Vec<String>,
    /// A tool that returns a picture.
    image: &'static str,
    /// The params of a call that returns `text`.
    large: Value,
    text: String,
    /// The first resource, if it is known.
    uri: Option<&'static str>,
}

#[tokio::test]
async fn host_of_a_node_server_survives_cuts() {
    let message = "0123456789abcdef".repeat(LARGE / 16);
    host_survives_cuts(Case {
        command: everything(),
        image: "get-tiny-image",
        large: json!({"name": "echo", "arguments": {"message": message}}),
        text: format!("Echo: {message}"),
        uri: None,
    })
    .await;
}

#[tokio::test]
async fn host_of_a_python_server_survives_cuts() {
    host_survives_cuts(Case {
        command: waiting(),
        image: "picture",
        large: json!({"name": "large", "arguments": {"size": LARGE}}),
        text: "0123456789abcdef".repeat(LARGE / 16),
        uri: Some("waiting://note"),
    })
    .await;
}

async fn host_survives_cuts(case: Case) {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let Case {
        command,
        image,
        large,
        text,
        uri,
    } = case;
    let recorder = StdinRecorder::new();
    let mut host = Host::start(&["--on", link.url()], &recorder.wrap(&command));
    host.handshake().await;
    let cut_link = CutLink {
        link: &link,
        recorder: &recorder,
    };
    let mut send_request = async |method, params| {
        // Once this has a response, all earlier messages have arrived.
        host.call("resources/templates/list", json!({})).await;
        let response = cut_link.cut_before(method, host.call(method, params)).await;
        assert_eq!(response.get("error"), None, "{response}");
        response["result"].clone()
    };
    let tools = send_request("tools/list", json!({})).await;
    assert!(tools["tools"].as_array().is_some_and(|all| all.len() > 4));
    let resources = send_request("resources/list", json!({})).await;
    let first = resources["resources"][0]["uri"].clone();
    assert!(uri.is_none_or(|uri| first == uri), "{resources}");
    let read = send_request("resources/read", json!({"uri": first})).await;
    assert_eq!(read["contents"][0]["uri"], first, "{read}");
    let picture = send_request("tools/call", json!({"name": image})).await;
    let blocks = picture["content"].as_array().expect("a list");
    let is_png = |block: &Value| {
        let data = block["data"].as_str().unwrap_or_default();
        block["type"] == "image" && data.starts_with("iVBORw0KGgo")
    };
    assert!(blocks.iter().any(is_png), "{picture}");
    let response = host.call("tools/call", large);
    let response = cut_link.cut_within("tools/call", response).await;
    let text_content = &response["result"]["content"][0]["text"];
    assert!(*text_content == text, "a different text");
    assert_eq!(host.close().await.status.code(), Some(0));
    // A repeated request would be counted as well.
    assert_eq!(recorder.count("tools/call"), 2);
}

fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text), ..] => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

#[tokio::test]
async fn our_client_survives_cuts() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let options = RemoteOptions::default();
    let remote = RemoteExecutor::connect(link.url(), options).await;
    let remote: Arc<dyn Executor> = Arc::new(remote.expect("a remote executor"));
    let local = LocalExecutor::new(LocalOptions::default()).expect("a local executor");
    let local: Arc<dyn Executor> = Arc::new(local);
    let executors = Executors {
        local: Arc::new(local),
        remote: Some(Arc::new(remote)),
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
        let recorder = StdinRecorder::new();
        let command = recorder.wrap(&command);
        let (program, args) = (&command[0], &command[1..]);
        let config = json!({"command": program, "args": args, "environment": "remote"});
        let config = ServerConfig::parse("one", &config).expect("valid");
        let servers = BTreeMap::from([("one".to_owned(), config)]);
        let pool = ServerPool::start(servers, &executors, &Limits::default());
        deadline::expect_interpreter("the server", pool.wait_started()).await;
        let session = pool.session("one").await.expect("a session");
        let cut_link = CutLink {
            link: &link,
            recorder: &recorder,
        };
        // Once this has a response, all earlier messages have arrived.
        let arrived = async || {
            let templates = session.resource_templates();
            drop(templates.await.expect("a list"));
        };

        let tools = cut_link.cut_before("tools/list", pool.tools("one")).await;
        assert!(tools.expect("a list").len() > 4);
        arrived().await;
        let resources = session.resources();
        let resources = cut_link.cut_before("resources/list", resources).await;
        let uri = resources.expect("a list")[0].uri.clone();
        arrived().await;
        let read = session.read_resource(&uri);
        let read = cut_link.cut_before("resources/read", read).await;
        assert_eq!(read.expect("readable").contents.len(), 1);
        arrived().await;
        let picture = pool.call("one", image, serde_json::Map::new(), None);
        let picture = cut_link.cut_before("tools/call", picture).await;
        let is_png = |block: &ContentBlock| matches!(block, ContentBlock::Image(image) if image.data.starts_with("iVBORw0KGgo"));
        let picture = picture.expect("a picture");
        assert!(picture.content.iter().any(is_png), "{picture:?}");
        let arguments = arguments.as_object().expect("an object").clone();
        arrived().await;
        let response = pool.call("one", large, arguments, None);
        let response = cut_link.cut_within("tools/call", response).await;
        assert!(
            text(&response.expect("a response")) == expected,
            "a different text"
        );
        assert_eq!(recorder.count("tools/call"), 2);
        deadline::expect_soon("its exit", pool.close()).await;
    }
}

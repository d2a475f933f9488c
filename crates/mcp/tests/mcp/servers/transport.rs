//! The process transport: order of messages, and termination.

use std::{collections::BTreeMap, pin::Pin};

use outpost_mcp::{Command, EndReason, Limits, ProcessTransport};
use outpost_testkit::TestTag;
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage},
    transport::Transport as _,
};
use serde_json::json;

use super::harness::{TestEnvironment, in_each_environment, soon};
use crate::executor::TestExecutor;

#[tokio::test]
async fn closing_or_dropping_the_transport_terminates_the_server() {
    in_each_environment(async |environment| {
        for closed in [true, false] {
            let tag = TestTag::new();
            let command = Command {
                args: vec!["1000".into()],
                env: BTreeMap::from([(TestTag::VARIABLE.to_owned(), tag.as_str().into())]),
                ..Command::new("sleep")
            };
            let limits = Limits::default();
            let mut transport = environment.launch(&command, &limits).await;
            let diagnostics = transport.diagnostics();
            tag.alive(1).await;
            if closed {
                soon("close", transport.close()).await.unwrap();
                tag.gone().await;
                soon("the second close", transport.close()).await.unwrap();
            }
            drop(transport);
            tag.gone().await;
            assert_eq!(diagnostics.end_reason(), Some(EndReason::Closed));
        }
    })
    .await;
}

#[tokio::test]
async fn server_is_terminated_once() {
    for closed in [true, false] {
        let server = TestExecutor::recorded();
        let executor = server.connect().await;
        let tag = TestTag::new();
        let command = Command {
            args: vec!["1000".into()],
            env: BTreeMap::from([(TestTag::VARIABLE.to_owned(), tag.as_str().into())]),
            ..Command::new("sleep")
        };
        let limits = Limits::default();
        let launched = ProcessTransport::launch("one", &command, &*executor, &limits).await;
        let mut transport = launched.unwrap();
        tag.alive(1).await;
        assert_eq!(server.count_sent("process/terminate"), 0);
        if closed {
            soon("close", transport.close()).await.unwrap();
            soon("the second close", transport.close()).await.unwrap();
        }
        drop(transport);
        tag.gone().await;
        // Requests are processed in order, so nothing is pending after these responses.
        executor.environment().await.unwrap();
        soon("the response", executor.processes()).await.unwrap();
        assert_eq!(
            server.count_sent("process/terminate"),
            1,
            "closed: {closed}"
        );
    }
}

#[tokio::test]
async fn leftover_process_can_send_messages_after_exit() {
    in_each_environment(async |environment| {
        // The second process waits until the first is reaped.
        let script = r#"(while kill -0 $$ 2>/dev/null; do sleep 0.01; done
            echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
            printf '{"jsonrpc":"2.0","id":7,"result":{}}') & exit 5"#;
        let command = Command {
            args: vec!["-c".into(), script.into()],
            ..Command::new("/bin/sh")
        };
        let limits = Limits::default();
        let mut transport = environment.launch(&command, &limits).await;
        let first = soon("a message", transport.receive()).await;
        assert!(matches!(first, Some(JsonRpcMessage::Notification(_))), "{first:?}");
        let second = soon("another", transport.receive()).await;
        assert!(matches!(second, Some(JsonRpcMessage::Response(_))), "{second:?}");
        assert!(soon("the end", transport.receive()).await.is_none());
        let reason = transport.diagnostics().end_reason();
        assert!(matches!(reason, Some(EndReason::Exited { code: 5, .. })), "{reason:?}");
    })
    .await;
}

#[tokio::test]
async fn messages_arrive_in_the_order_of_sends() {
    in_each_environment(async |environment| {
        let limits = Limits::default();
        let command = Command::new("cat");
        let mut transport = environment.launch(&command, &limits).await;
        let ping = |id: u32| -> ClientJsonRpcMessage {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            serde_json::from_value(ping).unwrap()
        };
        // More than any queue holds, and polled in reverse order.
        let mut sent: Vec<Pin<Box<dyn Future<Output = _> + Send>>> = Vec::new();
        for id in 0..40 {
            sent.push(Box::pin(transport.send(ping(id))));
        }
        let mut sending = tokio::task::JoinSet::new();
        for send in sent.into_iter().rev() {
            sending.spawn(send);
        }
        let mut echoed = Vec::new();
        while echoed.len() < 40 {
            match soon("an echo", transport.receive()).await {
                Some(JsonRpcMessage::Request(request)) => echoed.push(request.id.to_string()),
                other => panic!("{other:?}"),
            }
        }
        let expected: Vec<_> = (0..40).map(|id| id.to_string()).collect();
        assert_eq!(echoed, expected);
        soon("close", transport.close()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn dropping_the_transport_terminates_leftover_processes() {
    in_each_environment(async |environment| {
        let tag = TestTag::new();
        // The second process writes after the first is reaped.
        let script = r#"(while kill -0 $$ 2>/dev/null; do sleep 0.01; done
            echo '{"jsonrpc":"2.0","id":7,"result":{}}'; exec sleep 1000) & exit 5"#;
        let command = Command {
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::from([(TestTag::VARIABLE.to_owned(), tag.as_str().into())]),
            ..Command::new("/bin/sh")
        };
        let limits = Limits::default();
        let mut transport = environment.launch(&command, &limits).await;
        let message = soon("its message", transport.receive()).await;
        assert!(
            matches!(message, Some(JsonRpcMessage::Response(_))),
            "{message:?}"
        );
        tag.alive(1).await;
        drop(transport);
        tag.gone().await;
    })
    .await;
}

#[tokio::test]
async fn local_server_has_own_process_group_and_gets_sigterm() {
    let environment = TestEnvironment::local().await;
    let directory = tempfile::tempdir().unwrap();
    let terminated = directory.path().join("terminated");
    let tag = TestTag::new();
    // Reports whether it leads its process group, and ignores SIGTERM.
    let script = r#"trap 'echo terminated > "$0"' TERM; trap '' HUP
        own=$(cut -d' ' -f5 /proc/$$/stat); [ "$own" = $$ ] && own=true || own=false
        echo "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"own\":$own}}"
        while :; do sleep 0.01; done"#;
    let command = Command {
        args: vec!["-c".into(), script.into(), terminated.clone().into()],
        env: BTreeMap::from([(TestTag::VARIABLE.to_owned(), tag.as_str().into())]),
        ..Command::new("/bin/sh")
    };
    let limits = Limits::default();
    let mut transport = environment.launch(&command, &limits).await;
    let group = soon("its group", transport.receive()).await;
    let group = serde_json::to_value(group).unwrap();
    assert_eq!(group["result"]["own"], true, "{group}");
    soon("close", transport.close()).await.unwrap();
    tag.gone().await;
    assert_eq!(std::fs::read_to_string(terminated).unwrap(), "terminated\n");
}

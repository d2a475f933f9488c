//! A transport and its process: the order of messages, and the end of both.

use std::{collections::BTreeMap, pin::Pin, sync::Arc};

use outpost_mcp::{Command, ExecutorLauncher, Fault, Launcher as _, Limits};
use outpost_testkit::Mark;
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage},
    transport::Transport as _,
};
use serde_json::json;

use crate::stage::{Executor, Stage, on_each_stage, soon};

#[tokio::test]
async fn a_transport_that_is_closed_or_dropped_ends_its_server() {
    on_each_stage(async |stage| {
        let launcher = stage.launcher();
        for closed in [true, false] {
            let mark = Mark::new();
            let command = Command {
                args: vec!["1000".into()],
                env: BTreeMap::from([(Mark::VARIABLE.to_owned(), mark.as_str().into())]),
                ..Command::new("sleep")
            };
            let limits = Limits::default();
            let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
            let account = transport.account();
            mark.alive(1).await;
            if closed {
                soon("the close", transport.close()).await.unwrap();
                mark.gone().await;
                soon("the second close", transport.close()).await.unwrap();
            }
            drop(transport);
            mark.gone().await;
            assert_eq!(account.fault(), Some(Fault::Closed));
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_is_told_to_end_once() {
    for closed in [true, false] {
        let executor = Executor::tapped();
        let place = executor.place().await;
        let launcher = ExecutorLauncher::new(Arc::clone(&place));
        let mark = Mark::new();
        let command = Command {
            args: vec!["1000".into()],
            env: BTreeMap::from([(Mark::VARIABLE.to_owned(), mark.as_str().into())]),
            ..Command::new("sleep")
        };
        let limits = Limits::default();
        let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
        mark.alive(1).await;
        assert_eq!(executor.heard("process/terminate"), 0);
        if closed {
            soon("the close", transport.close()).await.unwrap();
            soon("the second close", transport.close()).await.unwrap();
        }
        drop(transport);
        mark.gone().await;
        // Whatever else was to be said has been, once this is answered.
        place.environment().await.unwrap();
        soon("the answer", place.processes()).await.unwrap();
        assert_eq!(executor.heard("process/terminate"), 1, "closed: {closed}");
    }
}

#[tokio::test]
async fn what_a_server_has_left_behind_may_speak_for_it() {
    on_each_stage(async |stage| {
        let launcher = stage.launcher();
        // The second process waits until the first is gone and buried.
        let script = r#"(while kill -0 $$ 2>/dev/null; do sleep 0.01; done
            echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
            printf '{"jsonrpc":"2.0","id":7,"result":{}}') & exit 5"#;
        let command = Command {
            args: vec!["-c".into(), script.into()],
            ..Command::new("/bin/sh")
        };
        let limits = Limits::default();
        let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
        let first = soon("a message", transport.receive()).await;
        assert!(matches!(first, Some(JsonRpcMessage::Notification(_))), "{first:?}");
        let second = soon("another", transport.receive()).await;
        assert!(matches!(second, Some(JsonRpcMessage::Response(_))), "{second:?}");
        assert!(soon("the end", transport.receive()).await.is_none());
        let fault = transport.account().fault();
        assert!(matches!(fault, Some(Fault::Exited { code: 5, .. })), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn messages_arrive_in_the_order_they_were_sent_in() {
    on_each_stage(async |stage| {
        let launcher = stage.launcher();
        let limits = Limits::default();
        let command = Command::new("cat");
        let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
        let ping = |id: u32| -> ClientJsonRpcMessage {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            serde_json::from_value(ping).unwrap()
        };
        // More than any queue on the way has room for, and the last is looked after first.
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
        soon("the close", transport.close()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_transport_that_is_dropped_ends_what_its_server_has_left_behind() {
    on_each_stage(async |stage| {
        let launcher = stage.launcher();
        let mark = Mark::new();
        // The second process speaks when the first is gone and buried.
        let script = r#"(while kill -0 $$ 2>/dev/null; do sleep 0.01; done
            echo '{"jsonrpc":"2.0","id":7,"result":{}}'; exec sleep 1000) & exit 5"#;
        let command = Command {
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::from([(Mark::VARIABLE.to_owned(), mark.as_str().into())]),
            ..Command::new("/bin/sh")
        };
        let limits = Limits::default();
        let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
        let word = soon("its word", transport.receive()).await;
        assert!(
            matches!(word, Some(JsonRpcMessage::Response(_))),
            "{word:?}"
        );
        mark.alive(1).await;
        drop(transport);
        mark.gone().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_here_has_a_group_of_its_own_and_is_asked_before_it_is_killed() {
    let stage = Stage::local().await;
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let mark = Mark::new();
    // It says which group it is in, and doesn't end when it is asked to.
    let script = r#"trap 'echo asked > "$0"' TERM; trap '' HUP
        own=$(cut -d' ' -f5 /proc/$$/stat); [ "$own" = $$ ] && own=true || own=false
        echo "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"own\":$own}}"
        while :; do sleep 0.01; done"#;
    let command = Command {
        args: vec!["-c".into(), script.into(), asked.clone().into()],
        env: BTreeMap::from([(Mark::VARIABLE.to_owned(), mark.as_str().into())]),
        ..Command::new("/bin/sh")
    };
    let limits = Limits::default();
    let launcher = &stage.launchers.local;
    let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
    let group = soon("its group", transport.receive()).await;
    let group = serde_json::to_value(group).unwrap();
    assert_eq!(group["result"]["own"], true, "{group}");
    soon("the close", transport.close()).await.unwrap();
    mark.gone().await;
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
}

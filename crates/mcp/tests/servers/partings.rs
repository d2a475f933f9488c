//! How a server is left: what it was told last it has heard, and it is asked before
//! it is made to.

use std::{collections::BTreeMap, time::Duration};

use outpost_mcp::{CallError, Command, Limits};
use outpost_testkit::{Mark, patience};
use rmcp::transport::Transport as _;
use serde_json::json;

use crate::stage::{call, odd, on_each_stage, soon};

#[tokio::test]
async fn a_server_hears_that_nobody_waits_before_it_is_ended() {
    on_each_stage(async |stage| {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        let mut server = odd(&["slow-of-hearing", heard.to_str().unwrap()]);
        server["tool_timeout_sec"] = json!(0.1);
        let limits = Limits {
            // However slow this machine is.
            parting: Duration::from_secs(60),
            ..Limits::default()
        };
        let ensemble = stage.one(&server, &limits);
        let called = call(&ensemble, "hang", json!({})).await;
        assert!(
            matches!(called, Err(CallError::TimedOut { .. })),
            "{called:?}"
        );
        soon("the close", ensemble.close()).await;
        patience::seen("the word", || heard.exists().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_is_asked_to_end_wherever_it_runs() {
    on_each_stage(async |stage| {
        let launcher = stage.launcher();
        let folder = tempfile::tempdir().unwrap();
        let (up, asked) = (folder.path().join("up"), folder.path().join("asked"));
        let script = format!(
            "trap '' HUP; trap 'echo > {}; exit 0' TERM; echo > {}; while :; do sleep 0.05; done",
            asked.display(),
            up.display()
        );
        for closed in [true, false] {
            let mark = Mark::new();
            let command = Command {
                args: vec!["-c".into(), script.clone().into()],
                env: BTreeMap::from([(Mark::VARIABLE.to_owned(), mark.as_str().into())]),
                ..Command::new("/bin/sh")
            };
            let limits = Limits {
                parting: Duration::from_millis(50),
                ..Limits::default()
            };
            let mut transport = launcher.launch("one", &command, &limits).await.unwrap();
            patience::seen("the server", || up.exists().then_some(())).await;
            if closed {
                soon("the close", transport.close()).await.unwrap();
            }
            drop(transport);
            mark.gone().await;
            assert!(asked.exists(), "{}, closed: {closed}", stage.name);
            std::fs::remove_file(&asked).unwrap();
            std::fs::remove_file(&up).unwrap();
        }
    })
    .await;
}

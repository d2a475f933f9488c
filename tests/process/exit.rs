//! Tests exit codes.

use outpost_testkit::{Start, deadline, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn exit_code_is_the_childs() {
    let (_server, client) = ready().await;
    for code in [0, 1, 7, 124, 127, 128, 137, 255] {
        for tty in [false, true] {
            let id = format!("{code}-{tty}");
            let start = sh(&id, &format!("exit {code}")).with("tty", tty);
            assert_eq!(client.run(start).await.code(), code, "{id}");
        }
    }
}

#[tokio::test]
async fn signal_death_is_128_plus_number() {
    let (_server, client) = ready().await;
    for number in [1, 2, 3, 6, 9, 11, 13, 15, 31] {
        for tty in [false, true] {
            let id = format!("{number}-{tty}");
            let start = sh(&id, &format!("ulimit -c 0; kill -{number} $$")).with("tty", tty);
            let log = client.run(start).await;
            assert_eq!(log.code(), 128 + number, "{id}");
            let read = client.read(&id, json!({})).await;
            assert_eq!(read["exitCode"], 128 + number, "{id}");
        }
    }
}

#[tokio::test]
async fn hundreds_of_exits_leave_no_descriptors_or_zombies() {
    let (server, client) = ready().await;
    let run = async |from: usize, until: usize| {
        for n in from..until {
            let start = Start::new(&format!("p{n}"), &["true"]).with("tty", n % 4 == 0);
            client.request_start(start).await;
        }
        for n in from..until {
            client.closed(&format!("p{n}")).await;
        }
    };
    run(0, 50).await;
    let before = server.stats();
    let (files, children) = (before.open_files(), before.children().len());
    for batch in 1..10 {
        run(batch * 50, batch * 50 + 50).await;
    }
    deadline::poll_until("the end of all descriptors and children", || {
        let stats = server.stats();
        // The server pools up to sixteen subreapers with a descriptor each, and may have had none
        // at first.
        let few = stats.open_files() <= files + 16 + 8 && stats.children().len() <= children + 4;
        (few && stats.zombies().is_empty()).then_some(())
    })
    .await;
}

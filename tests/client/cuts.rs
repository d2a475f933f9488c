//! The link is cut, again and again, and nobody notices.

use std::sync::{Arc, Mutex};

use outpost_client::{DeliveryChoice, Event, Place as _, Remote, RemoteOptions, Standing};
use outpost_testkit::{CountedLines, Direction, Link, patience};

use super::{connect, run, script};
use crate::outpost;

/// Waits until the client has lost its connection and has one again.
async fn lost_and_found(remote: &Remote, cut: impl Future<Output = ()>) {
    let mut standing = remote.standing();
    cut.await;
    let lost = standing.wait_for(|now| *now == Standing::Recovering);
    drop(patience::soon("the loss", lost).await.unwrap());
    let found = standing.wait_for(|now| *now != Standing::Recovering);
    let found = patience::soon("the connection", found)
        .await
        .unwrap()
        .clone();
    assert_eq!(found, Standing::Connected);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_whole_over_twenty_cuts() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let remote = connect(link.url()).await.unwrap();
    let total = 3_000_000;
    let process = remote
        .start(script(&server, &format!("seq 1 {total}; exit 9")))
        .await
        .unwrap();
    let lines = Arc::new(Mutex::new(CountedLines::default()));
    let taken = Arc::clone(&lines);
    let mut events = process.events();
    let reading = tokio::spawn(async move {
        let (mut last, mut code) = (0, None);
        while let Some(event) = patience::soon("an event", events.next()).await {
            last += 1;
            match event {
                Event::Output { seq, bytes, .. } => {
                    assert_eq!(seq, last);
                    taken.lock().unwrap().take(&bytes);
                }
                Event::Exited { code: exit, .. } => code = Some(exit),
                Event::Closed { .. } => return code,
                Event::Failed { message } => panic!("{message}"),
            }
        }
        panic!("it was never closed");
    });
    for round in 0..20 {
        let due = total * (round + 1) / 22;
        let count = || lines.lock().unwrap().count();
        patience::seen("more lines", || (count() >= due).then_some(())).await;
        let cut = async {
            match round % 3 {
                0 => link.stall(Direction::ToClient),
                1 => link.half_close(Direction::ToServer),
                _ => {}
            }
            link.cut().await;
            link.open();
        };
        lost_and_found(&remote, cut).await;
    }
    assert_eq!(reading.await.unwrap(), Some(9));
    assert_eq!(lines.lock().unwrap().count(), total);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_arrives_once_over_cuts() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let remote = connect(link.url()).await.unwrap();
    let process = remote
        .start(script(&server, "exec cat").stdin())
        .await
        .unwrap();
    let mut expected = String::new();
    for number in 0..200 {
        let line = format!("line {number}\n");
        expected.push_str(&line);
        if number % 20 == 19 {
            let (written, ()) =
                tokio::join!(process.write(line), lost_and_found(&remote, link.cut()));
            written.unwrap();
        } else {
            process.write(line).await.unwrap();
        }
    }
    process.close_stdin().await.unwrap();
    assert_eq!(super::output(&process).await, (expected, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_output_is_caught_up_with_by_reading() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let options = RemoteOptions {
        delivery: DeliveryChoice::Push,
        ..RemoteOptions::default()
    };
    let remote = Remote::connect(link.url(), options).await.unwrap();
    let start = script(
        &server,
        "read x; seq 1 20000; read x; seq 20001 40000; exit 3",
    );
    let process = remote.start(start.stdin()).await.unwrap();
    let reading = super::output(&process);
    let typing = async {
        lost_and_found(&remote, link.cut()).await;
        process.write("\n").await.unwrap();
        lost_and_found(&remote, link.cut()).await;
        process.write("\n").await.unwrap();
        lost_and_found(&remote, link.cut()).await;
    };
    let ((text, code), ()) = tokio::join!(reading, typing);
    assert_eq!(code, 3);
    assert_eq!(text.lines().count(), 40_000);
    let expected: String = (1..=40_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_takes_everything_along() {
    let mut server = outpost().start().await;
    let mut options = RemoteOptions::default();
    options.limits.recover_within = std::time::Duration::from_millis(300);
    let remote = Remote::connect(&server.urls()[0], options).await.unwrap();
    assert_eq!(
        run(&remote, script(&server, "echo hi")).await,
        ("hi\n".to_owned(), 0)
    );
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    server.signal(rustix::process::Signal::TERM);
    server.ended().await;
    let error = patience::soon("the failure", process.wait()).await;
    // It may have heard of the end of the process before that of the server.
    if let Err(error) = error {
        let words = error.to_string();
        assert!(
            words.starts_with("exec-server transport disconnected: "),
            "{words}"
        );
    }
    let mut standing = remote.standing();
    let failed = standing.wait_for(|now| matches!(now, Standing::Failed { .. }));
    drop(patience::soon("the failure", failed).await.unwrap());
    let refused = remote.start(script(&server, "true")).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("exec-server transport disconnected: ")
    );
}

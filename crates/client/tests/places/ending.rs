//! When nobody holds a process any more.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outpost_client::{Place, Process};

use crate::places::{local, on_every_place, sh, soon};

/// Whether a process runs, as its operating system sees it.
fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    status.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with(['Z', 'X'])
    })
}

async fn pid_of(place: &Arc<dyn Place>, process: &Process) -> u32 {
    let all = place.processes().await.unwrap();
    let entry = all.iter().find(|entry| entry.process_id == process.id());
    entry.and_then(|entry| entry.pid).unwrap()
}

async fn gone(pid: u32) {
    soon("its end", async {
        while is_alive(pid) {
            // sleep: the end of a process that isn't ours has no event
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_last_handle_ends_it() {
    on_every_place(async |place| {
        let process = place.start(sh("exec sleep 600")).await.unwrap();
        let pid = pid_of(&place, &process).await;
        let clone = process.clone();
        drop(process);
        let events = clone.events();
        drop(clone);
        place.processes().await.unwrap();
        assert!(is_alive(pid), "a stream is a handle too");
        drop(events);
        gone(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_detached_goes_on() {
    on_every_place(async |place| {
        let process = place.start(sh("exec sleep 600").id("d")).await.unwrap();
        let pid = pid_of(&place, &process).await;
        process.detach();
        drop(process);
        place.processes().await.unwrap();
        assert!(is_alive(pid));
        let again = place.attach("d", 0).await.unwrap();
        assert!(again.terminate().await.unwrap());
        assert_eq!(soon("its exit", again.wait()).await.unwrap().code, 137);
        gone(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_left_running_on_purpose_stays() {
    on_every_place(async |place| {
        let script = "sleep 600 >/dev/null 2>&1 & echo $!";
        let process = place.start(sh(script)).await.unwrap();
        let told = crate::places::story(&process).await;
        let pid: u32 = told.stdout().trim().parse().unwrap();
        drop(process);
        place.processes().await.unwrap();
        assert!(is_alive(pid));
        // The place is closed by the caller; what is local ends then, and the rest
        // with its server.
        let killed = place.start(sh(&format!("kill {pid}"))).await.unwrap();
        assert_eq!(crate::places::story(&killed).await.exit, Some(0));
        gone(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_nobody_waits_for_is_undone() {
    on_every_place(async |place| {
        for round in 0..5_u32 {
            let mut start = place.start(sh("exec sleep 600").id(format!("u{round}")));
            // A first step, and no second. Where that was enough, the process is
            // dropped with the answer.
            std::future::poll_fn(|cx| {
                let _ = start.as_mut().poll(cx);
                std::task::Poll::Ready(())
            })
            .await;
            drop(start);
        }
        soon("an empty place", async {
            loop {
                let all = place.processes().await.unwrap();
                let alive = |pid: Option<u32>| pid.is_none_or(is_alive);
                if !all
                    .iter()
                    .any(|entry| entry.exit_code.is_none() && alive(entry.pid))
                {
                    break;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_place_refuses_with_the_same_words() {
    on_every_place(async |place| {
        let process = place.start(sh("exec sleep 600")).await.unwrap();
        let mut events = process.events();
        place.close().await.unwrap();
        let words = "exec-server transport disconnected: the place was closed";
        let refused = place.start(sh("true")).await.unwrap_err();
        assert_eq!(refused.to_string(), words);
        assert_eq!(place.processes().await.unwrap_err().to_string(), words);
        assert_eq!(place.environment().await.unwrap_err().to_string(), words);
        // Whatever becomes of the process, its stream ends.
        while soon("the end", events.next()).await.is_some() {}
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_place_that_is_dropped_leaves_nothing() {
    let place = local();
    let process = place.start(sh("exec sleep 600")).await.unwrap();
    let pid = pid_of(&place, &process).await;
    process.detach();
    drop(process);
    drop(place);
    gone(pid).await;
}

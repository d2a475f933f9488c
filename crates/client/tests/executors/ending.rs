//! The end of handles and executors.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outpost_client::{Executor, Process};

use crate::harness::{local, on_every_executor, sh, soon};

/// Whether a process runs, according to `/proc`.
fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    status.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with(['Z', 'X'])
    })
}

async fn pid_of(executor: &Arc<dyn Executor>, process: &Process) -> u32 {
    let all = executor.processes().await.unwrap();
    let entry = all.iter().find(|entry| entry.process_id == process.id());
    entry.and_then(|entry| entry.pid).unwrap()
}

async fn wait_dead(pid: u32) {
    soon("its end", async {
        while is_alive(pid) {
            // sleep: there is no event for the end of a process that is not a child
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_last_handle_terminates_the_process() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("exec sleep 600")).await.unwrap();
        let pid = pid_of(&executor, &process).await;
        let clone = process.clone();
        drop(process);
        let events = clone.events();
        drop(clone);
        executor.processes().await.unwrap();
        assert!(is_alive(pid), "a stream is a handle too");
        drop(events);
        wait_dead(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_process_survives_its_handles() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("exec sleep 600").id("d")).await.unwrap();
        let pid = pid_of(&executor, &process).await;
        process.detach();
        drop(process);
        executor.processes().await.unwrap();
        assert!(is_alive(pid));
        let again = executor.attach("d", 0).await.unwrap();
        assert!(again.terminate().await.unwrap());
        assert_eq!(soon("its exit", again.wait()).await.unwrap().code, 137);
        wait_dead(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_children_survive_the_exit() {
    on_every_executor(async |executor| {
        let script = "sleep 600 >/dev/null 2>&1 & echo $!";
        let process = executor.start(sh(script)).await.unwrap();
        let log = crate::harness::read_all(&process).await;
        let pid: u32 = log.stdout().trim().parse().unwrap();
        drop(process);
        executor.processes().await.unwrap();
        assert!(is_alive(pid));
        let killed = executor.start(sh(&format!("kill {pid}"))).await.unwrap();
        assert_eq!(crate::harness::read_all(&killed).await.exit, Some(0));
        wait_dead(pid).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_start_future_terminates_process() {
    on_every_executor(async |executor| {
        for round in 0..5_u32 {
            let mut start = executor.start(sh("exec sleep 600").id(format!("u{round}")));
            // Poll once. If that is enough, the process is dropped with the response.
            std::future::poll_fn(|cx| {
                let _ = start.as_mut().poll(cx);
                std::task::Poll::Ready(())
            })
            .await;
            drop(start);
        }
        soon("the end of all processes", async {
            loop {
                let all = executor.processes().await.unwrap();
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
async fn calls_on_a_closed_executor_fail_alike() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("exec sleep 600")).await.unwrap();
        let mut events = process.events();
        executor.close().await.unwrap();
        let text = "exec-server transport disconnected: the executor was closed";
        let refused = executor.start(sh("true")).await.unwrap_err();
        assert_eq!(refused.to_string(), text);
        assert_eq!(executor.processes().await.unwrap_err().to_string(), text);
        assert_eq!(executor.environment().await.unwrap_err().to_string(), text);
        // The stream ends in any case.
        while soon("the end", events.next()).await.is_some() {}
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_local_executor_kills_its_processes() {
    let executor = local();
    let process = executor.start(sh("exec sleep 600")).await.unwrap();
    let pid = pid_of(&executor, &process).await;
    process.detach();
    drop(process);
    drop(executor);
    wait_dead(pid).await;
}

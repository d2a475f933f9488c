//! Which processes survive when handles are dropped and when the whole program is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::*;

/// Starts an orphaned daemon and keeps the leader running.
const TREE: &str = "setsid sh -c 'trap \"\" HUP TERM; sleep 1000 & echo daemon $!'; \
                    sleep 1000 & echo child $! told; wait";

#[tokio::test]
async fn dropped_handles_kill_nothing_but_dropped_spawner_does() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo left $!'";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    finish(&mut child).await;
    drop(child.into_inner());
    for _ in 0..3 {
        run(&spawner, command(&["true"], PIPES)).await;
    }
    assert!(is_running(left));
    drop(spawner);
    gone(left).await;
}

#[tokio::test]
async fn held_part_keeps_tree_alive_after_spawner() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    drop(spawner);
    drop(child.stdin.take());
    let finished = finish(&mut child).await;
    assert_eq!(finished.exit, outpost_process::Exit::Code(0));
}

/// Set in the environment of the program that is to be killed.
const VICTIM: &str = "OUTPOST_TEST_VICTIM";

/// Does nothing by itself: it is the program that [`killed_program_leaves_no_processes`] kills.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "this is how it tells its numbers")]
async fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let spawner = spawner();
    let mut children = Vec::new();
    for stdio in [PIPES, PTY] {
        let mut child = start(&spawner, sh(TREE, stdio)).await;
        let text = expect(&mut child.outputs[0], "told").await;
        let is_number = |word: &&str| word.parse::<i32>().is_ok();
        for number in text.split_whitespace().filter(is_number) {
            println!("number {number}");
        }
        println!("number {}", pid(&child));
        println!("number {}", reaper_of(&child));
        println!("number {}", factory_of(&child));
        children.push(child);
    }
    println!("ready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn killed_program_leaves_no_processes() {
    let mut victim = Command::new(std::env::current_exe().expect("our own program"))
        .args(["--exact", "survivors::victim", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdout = BufReader::new(victim.stdout.take().expect("it is piped"));
    let reading = tokio::task::spawn_blocking(move || {
        let lines = stdout.lines().map_while(Result::ok);
        let lines = lines.take_while(|line| line != "ready");
        let number = |line: String| line.rsplit_once("number ")?.1.parse().ok();
        lines.filter_map(number).collect::<Vec<i32>>()
    });
    let numbers = within("the numbers", reading).await.expect("it is read");
    let alive: Vec<_> = numbers.iter().map(|number| is_running(*number)).collect();
    victim.kill().expect("it is killed");
    victim.wait().expect("it is reaped");
    assert_eq!(alive, [true; 10], "{numbers:?}");
    for number in numbers {
        gone(number).await;
    }
}

//! A child's initial signal state, and signals sent to it.

use outpost_process::{Exit, Signal, Stdio};

use crate::support::*;

#[tokio::test]
async fn child_starts_with_default_unblocked_signals() {
    // Rust's runtime ignores SIGPIPE in this program, and the spawner thread blocks all signals.
    let own = std::fs::read_to_string("/proc/self/status").expect("we are alive");
    let ignored = own.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    let ignored = u64::from_str_radix(ignored.expect("there is such a line"), 16);
    assert_ne!(ignored, Ok(0), "this test needs something to undo");

    let finished = run(&spawner(), command(&["cat", "/proc/self/status"], PIPES)).await;
    for name in ["SigPnd", "SigBlk", "SigIgn", "SigCgt"] {
        let line = format!("{name}:\t0000000000000000\n");
        assert!(finished.stdout.contains(&line), "{}", finished.stdout);
    }
}

#[tokio::test]
async fn closed_pipe_kills_writer() {
    let mut child = start(&spawner(), command(&["yes"], PIPES)).await;
    drop(child.outputs.remove(0));
    let exit = within("the exit", child.exit.wait()).await;
    assert_eq!(exit, Exit::Signal(13));
}

#[tokio::test]
async fn terminating_signals_arrive() {
    let spawner = spawner();
    for (signal, number) in [
        (Signal::Hangup, 1),
        (Signal::Interrupt, 2),
        (Signal::Quit, 3),
        (Signal::Kill, 9),
        (Signal::User1, 10),
        (Signal::User2, 12),
        (Signal::Terminate, 15),
    ] {
        for stdio in [PIPES_AND_STDIN, PTY] {
            let mut child = start(&spawner, sh("ulimit -c 0; exec sleep 1000", stdio)).await;
            assert!(child.control.signal(signal).expect("it is sent"));
            let exit = within("the exit", child.exit.wait()).await;
            assert_eq!(exit, Exit::Signal(number));
        }
    }
}

#[tokio::test]
async fn other_signals_arrive() {
    let spawner = spawner();
    for (signal, name) in [(Signal::WindowChange, "WINCH"), (Signal::Continue, "CONT")] {
        for stdio in [PIPES_AND_STDIN, PTY] {
            let script = format!("trap 'echo got it' {name}; echo ready; read line; read line");
            let mut child = start(&spawner, sh(&script, stdio)).await;
            expect(&mut child.outputs[0], "ready").await;
            assert!(child.control.signal(signal).expect("it is sent"));
            // A shell runs traps between two commands.
            write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
            expect(&mut child.outputs[0], "got it").await;
        }
    }
}

#[tokio::test]
async fn signal_reaches_whole_group() {
    let script = "sleep 1000 & echo child $!; wait";
    for stdio in [PIPES, PTY] {
        let mut child = start(&spawner(), sh(script, stdio)).await;
        let grandchild = expect_number(&mut child.outputs[0], "child ").await;
        assert!(child.control.signal(Signal::Kill).expect("it is sent"));
        assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
        gone(grandchild).await;
    }
}

#[tokio::test]
async fn child_stops_and_continues() {
    let mut child = start(&spawner(), command(&["sleep", "1000"], PIPES)).await;
    let number = pid(&child);
    for (signal, stopped) in [(Signal::Stop, true), (Signal::Continue, false)] {
        assert!(child.control.signal(signal).expect("it is sent"));
        eventually("the change", || (state(number) == Some('T')) == stopped).await;
    }
    assert!(child.control.signal(Signal::Terminate).expect("it is sent"));
    assert_eq!(
        within("the exit", child.exit.wait()).await,
        Exit::Signal(15)
    );
}

#[tokio::test]
async fn signal_after_reap_is_not_sent() {
    let mut child = start(&spawner(), command(&["true"], PIPES)).await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    assert!(
        child
            .control
            .signal(Signal::Terminate)
            .expect("a zombie may be signalled")
    );
    child.exit.reap();
    assert!(
        !child
            .control
            .signal(Signal::Terminate)
            .expect("nothing is sent")
    );
    child.exit.reap();
    child.control.kill_tree().expect("there is nothing to kill");
}

#[tokio::test]
async fn signal_reaches_foreground_group_of_terminal() {
    // With job control the inner shell is in the foreground, in its own group.
    let inner = "trap \"echo inner got it\" TERM; echo ready; until test $go; do read go; done";
    let outer = "set -m; trap 'echo outer got it' TERM";
    let script = format!("{outer}; sh -c '{inner}; exit 4'; echo status $?; exit 5");
    let mut child = start(&spawner(), sh(&script, PTY)).await;
    expect(&mut child.outputs[0], "ready").await;
    assert!(child.control.signal(Signal::Terminate).expect("it is sent"));
    // Shells run traps between two commands.
    let input = child.stdin.take().expect("a terminal has input");
    write_all(&input, b"\ngo\n").await;
    let seen = expect(&mut child.outputs[0], "status 4").await;
    assert!(seen.contains("inner got it"), "{seen}");
    assert!(seen.contains("outer got it"), "{seen}");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(5));
}

#[tokio::test]
async fn exit_reports_the_killing_signal() {
    let spawner = spawner();
    let stdios: [Stdio; 2] = [PIPES, PTY];
    for stdio in stdios {
        for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("HUP", 1)] {
            let script = format!("ulimit -c 0; kill -{name} $$");
            let finished = run(&spawner, sh(&script, stdio)).await;
            assert_eq!(finished.exit, Exit::Signal(number), "{name}");
            assert_eq!(finished.exit.code(), 128 + number);
        }
    }
}

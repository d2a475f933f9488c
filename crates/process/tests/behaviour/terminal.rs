//! Children on a terminal.

use std::io;

use outpost_process::{Exit, NoTerminal, ReadOutcome, Stdio, Stream, TerminalSize};

use crate::support::*;

#[tokio::test]
async fn terminal_is_one_stream_and_controlling() {
    let script = "test -t 0 && test -t 1 && test -t 2 && echo by /dev/tty >/dev/tty; tty";
    let mut child = start(&spawner(), sh(script, PTY)).await;
    assert_eq!(child.outputs.len(), 1);
    assert_eq!(child.outputs[0].stream(), Stream::Pty);
    assert!(child.control.is_pty());
    assert!(child.stdin.as_ref().is_some_and(|input| input.is_pty()));
    let finished = finish(&mut child).await;
    let (first, second) = finished.stdout.split_once("\r\n").expect("two lines");
    assert_eq!(first, "by /dev/tty");
    assert!(second.starts_with("/dev/pts/"), "{second}");
    assert_eq!(finished.exit, Exit::Code(0));
    assert_eq!(child.outputs[0].read(10), ReadOutcome::End);
}

#[tokio::test]
async fn terminal_has_initial_size() {
    let size = TerminalSize {
        rows: 33,
        cols: 121,
    };
    let finished = run(&spawner(), command(&["stty", "size"], Stdio::Pty { size })).await;
    assert_eq!(finished.stdout, "33 121\r\n");
}

#[tokio::test]
async fn resize_changes_size_and_signals_child() {
    let script = "trap 'stty size; exit 0' WINCH; echo ready; read line; read line";
    let mut child = start(&spawner(), sh(script, PTY)).await;
    expect(&mut child.outputs[0], "ready\r\n").await;
    let size = TerminalSize {
        rows: 50,
        cols: 132,
    };
    child.control.resize(size).expect("it is resized");
    // A shell runs traps between two commands.
    write_all(child.stdin.as_ref().expect("a terminal has input"), b"\n").await;
    expect(&mut child.outputs[0], "50 132").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn resize_without_terminal_is_unsupported() {
    let child = start(&spawner(), command(&["cat"], PIPES_AND_STDIN)).await;
    let size = TerminalSize { rows: 1, cols: 1 };
    let error = child
        .control
        .resize(size)
        .expect_err("there is no terminal");
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    let inner = error.into_inner().expect("a typed error");
    assert_eq!(inner.downcast_ref(), Some(&NoTerminal));
}

#[tokio::test]
async fn resize_of_closed_terminal_is_not_connected() {
    let mut child = start(&spawner(), command(&["true"], PTY)).await;
    finish(&mut child).await;
    child.outputs.clear();
    drop(child.stdin.take());
    let size = TerminalSize { rows: 1, cols: 1 };
    let error = child.control.resize(size).expect_err("it is closed");
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
}

#[tokio::test]
async fn closing_terminal_hangs_up() {
    let mut child = start(&spawner(), sh("echo ready; exec sleep 1000", PTY)).await;
    expect(&mut child.outputs[0], "ready").await;
    child.outputs.clear();
    drop(child.stdin.take());
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(1));
}

#[tokio::test]
async fn interrupt_character_interrupts_foreground() {
    let mut child = start(&spawner(), sh("echo ready; exec sleep 1000", PTY)).await;
    expect(&mut child.outputs[0], "ready\r\n").await;
    write_all(child.stdin.as_ref().expect("a terminal has input"), b"\x03").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(2));
}

#[tokio::test]
async fn end_of_file_character_ends_input() {
    let mut child = start(&spawner(), command(&["cat"], PTY)).await;
    let input = child.stdin.take().expect("a terminal has input");
    assert_eq!(input.end_of_file_char(), 4);
    write_all(&input, b"line\n\x04").await;
    let finished = finish(&mut child).await;
    assert_eq!(finished.stdout, "line\r\nline\r\n");
    assert_eq!(finished.exit, Exit::Code(0));
}

#[tokio::test]
async fn end_of_file_character_is_current() {
    let mut child = start(&spawner(), sh("stty eof ^X; echo ready; exec cat", PTY)).await;
    expect(&mut child.outputs[0], "ready").await;
    let input = child.stdin.take().expect("a terminal has input");
    assert_eq!(input.end_of_file_char(), 0x18);
    write_all(&input, &[input.end_of_file_char()]).await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn terminal_is_in_utf8_mode() {
    let finished = run(&spawner(), command(&["stty", "-a"], PTY)).await;
    assert!(finished.stdout.contains(" iutf8"), "{}", finished.stdout);
}

#[tokio::test]
async fn megabytes_pass_through_terminal() {
    // In raw mode, so that the bytes pass unchanged; the reader is slower than the writer.
    let script = "stty raw -echo; echo ready; exec cat";
    let mut child = start(&spawner(), sh(script, PTY)).await;
    expect(&mut child.outputs[0], "ready").await;
    let input = child.stdin.take().expect("a terminal has input");
    let text: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let expected = text.clone();
    let writer = tokio::spawn(async move {
        write_all(&input, text.as_bytes()).await;
        input
    });
    let whole = |bytes: &[u8]| bytes.ends_with(b"\n299999\n");
    let mut bytes = within("all of it", read_until(&mut child.outputs[0], whole)).await;
    writer.await.expect("all is written");
    if bytes.starts_with(b"\n") || bytes.starts_with(b"\r\n") {
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        bytes.drain(..=line);
    }
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

#[tokio::test]
async fn flood_arrives_whole() {
    let finished = run(&spawner(), command(&["seq", "1", "300000"], PTY)).await;
    let expected: String = (1..=300_000)
        .map(|number| format!("{number}\r\n"))
        .collect();
    assert_eq!(finished.stdout, expected);
}

/// A flood disables the readiness of the terminal; output after a pause must still be reported.
#[tokio::test]
async fn readiness_is_reported_after_flood_pauses() {
    let script = "stty -echo; i=0; while [ $i -lt 40 ]; do \
                  head -c 300000 /dev/zero | tr '\\0' x; echo pause $i; read line; i=$((i+1)); done";
    let mut child = start(&spawner(), sh(script, PTY)).await;
    for round in 0..40 {
        expect(&mut child.outputs[0], &format!("pause {round}\r\n")).await;
        write_all(child.stdin.as_ref().expect("a terminal has input"), b"\n").await;
    }
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
}

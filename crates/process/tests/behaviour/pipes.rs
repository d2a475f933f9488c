//! Input and output through pipes.

use std::io;

use outpost_process::{Exit, ReadOutcome, Stream};

use crate::support::*;

#[tokio::test]
async fn stdout_and_stderr_are_separate_and_in_this_order() {
    let mut child = start(&spawner(), sh("echo out; echo err >&2", PIPES)).await;
    let streams: Vec<_> = child.outputs.iter().map(|output| output.stream()).collect();
    assert_eq!(streams, [Stream::Stdout, Stream::Stderr]);
    assert!(child.stdin.is_none());
    assert!(!child.control.is_pty());
    let finished = finish(&mut child).await;
    assert_eq!(finished.stdout, "out\n");
    assert_eq!(finished.stderr, "err\n");
    assert_eq!(finished.exit, Exit::Code(0));
}

#[tokio::test]
async fn stdin_without_pipe_is_at_end() {
    let finished = run(&spawner(), command(&["cat"], PIPES)).await;
    assert_eq!(finished.stdout, "");
    assert_eq!(finished.exit, Exit::Code(0));
}

#[tokio::test]
async fn input_is_echoed_and_end_is_seen() {
    let mut child = start(&spawner(), command(&["cat"], PIPES_AND_STDIN)).await;
    let input = child.stdin.take().expect("stdin was asked for");
    assert!(!input.is_pty());
    write_all(&input, b"hello").await;
    assert_eq!(expect(&mut child.outputs[0], "hello").await, "hello");
    assert_eq!(child.outputs[0].read(100), ReadOutcome::Empty);
    write_all(&input, b" again").await;
    drop(input);
    let finished = finish(&mut child).await;
    assert_eq!(finished.stdout, " again");
    assert_eq!(finished.exit, Exit::Code(0));
}

#[tokio::test]
async fn write_to_closed_pipe_fails() {
    let mut child = start(
        &spawner(),
        sh("exec <&-; echo closed; read x", PIPES_AND_STDIN),
    )
    .await;
    expect(&mut child.outputs[0], "closed").await;
    let input = child.stdin.take().expect("stdin was asked for");
    within("space to write", input.writable())
        .await
        .expect("the runtime works");
    let error = input.try_write(b"x").expect_err("there is no reader");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn full_stdin_pipe_blocks_until_read() {
    let script = "read line; echo got; cat >/dev/null; echo done";
    let mut child = start(&spawner(), sh(script, PIPES_AND_STDIN)).await;
    let input = child.stdin.take().expect("stdin was asked for");
    let block = [b'x'; 4096];
    let mut written = 0;
    within("space to write", input.writable())
        .await
        .expect("the runtime works");
    let error = loop {
        match input.try_write(&block) {
            Ok(n) => written += n,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(written >= 4096, "{written}");
    // The shell reads until it has its line, so there is space again.
    write_all(&input, b"\n").await;
    expect(&mut child.outputs[0], "got").await;
    write_all(&input, &vec![b'y'; 1024 * 1024]).await;
    drop(input);
    assert_eq!(finish(&mut child).await.stdout, "done\n");
}

#[tokio::test]
async fn flood_arrives_whole_and_in_order() {
    let mut child = start(&spawner(), command(&["seq", "1", "3000000"], PIPES)).await;
    let finished = finish(&mut child).await;
    let mut lines = 0;
    for (line, number) in finished.stdout.lines().zip(1..) {
        assert_eq!(line.parse(), Ok(number));
        lines = number;
    }
    assert_eq!(lines, 3_000_000);
}

#[tokio::test]
async fn slow_reader_loses_nothing() {
    let mut child = start(&spawner(), command(&["seq", "1", "20000"], PIPES)).await;
    let output = &mut child.outputs[0];
    let mut bytes = Vec::new();
    for limit in (1..1000).cycle() {
        within("output", output.readable())
            .await
            .expect("the runtime works");
        match output.read(limit) {
            ReadOutcome::Data(data) => {
                assert!(data.len() <= limit, "{} for {limit}", data.len());
                bytes.extend_from_slice(&data);
            }
            ReadOutcome::Empty => {}
            ReadOutcome::End => break,
        }
    }
    let expected: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
    assert_eq!(output.read(1), ReadOutcome::End, "it stays at its end");
    within("output", output.readable())
        .await
        .expect("and is readable at once");
}

#[tokio::test]
async fn zero_limit_reads_nothing() {
    let mut child = start(&spawner(), sh("echo x", PIPES)).await;
    within("output", child.outputs[0].readable())
        .await
        .expect("the runtime works");
    assert_eq!(child.outputs[0].read(0), ReadOutcome::Empty);
    assert_eq!(finish(&mut child).await.stdout, "x\n");
}

#[tokio::test]
async fn grandchild_keeps_stream_open_after_exit() {
    let script = "(read line; echo late) <&3 & exit 5";
    let mut command = sh(&format!("exec 3<&0; {script}"), PIPES_AND_STDIN);
    command.argv[0] = "sh".into();
    let mut child = start(&spawner(), command).await;
    let exit = within("the exit", child.exit.wait()).await;
    assert_eq!(exit, Exit::Code(5));
    assert_eq!(child.outputs[0].read(100), ReadOutcome::Empty);
    let input = child.stdin.take().expect("stdin was asked for");
    write_all(&input, b"now\n").await;
    assert_eq!(finish(&mut child).await.stdout, "late\n");
}

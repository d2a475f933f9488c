//! Standard input.

use outpost_client::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{on_every_executor, read_all, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_close_arrive_in_order() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("cat").stdin()).await.unwrap();
        for piece in ["one ", "two ", "three"] {
            process.write(piece).await.unwrap();
        }
        process.close_stdin().await.unwrap();
        let log = read_all(&process).await;
        assert_eq!(log.stdout(), "one two three");
        assert_eq!(log.exit, Some(0));
        let refused = process.write("more").await.unwrap_err();
        assert!(matches!(refused, Error::StdinClosed { .. }), "{refused}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn write_without_stdin_fails() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("cat; echo end")).await.unwrap();
        assert_eq!(read_all(&process).await.stdout(), "end\n");
        let refused = process.write("x").await.unwrap_err();
        assert!(matches!(refused, Error::StdinClosed { .. }), "{refused}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_input_passes_through() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("cat").stdin()).await.unwrap();
        let sent: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
        let (mut stdin, mut stdout) = (process.stdin(), process.stdout());
        let writing = async {
            stdin.write_all(&sent).await.unwrap();
            stdin.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (read, ()) = soon("all of it", async {
            tokio::join!(stdout.read_to_end(&mut received), writing)
        })
        .await;
        read.unwrap();
        assert!(received == sent, "{} bytes came back", received.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn close_stdin_types_end_of_file_on_a_terminal() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("stty -echo; echo ready; cat; echo end").tty())
            .await
            .unwrap();
        let mut wake = process.wake();
        soon("the first line", wake.wait_for(|last| *last > 0))
            .await
            .unwrap();
        process.write("line\n").await.unwrap();
        process.close_stdin().await.unwrap();
        assert_eq!(
            read_all(&process).await.stdout(),
            "ready\r\nline\r\nend\r\n"
        );
    })
    .await;
}

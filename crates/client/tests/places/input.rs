//! What a process is given to read.

use outpost_client::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::places::{on_every_place, sh, soon, story};

#[tokio::test(flavor = "multi_thread")]
async fn bytes_arrive_in_order_and_the_end_does_too() {
    on_every_place(async |place| {
        let process = place.start(sh("cat").stdin()).await.unwrap();
        for piece in ["one ", "two ", "three"] {
            process.write(piece).await.unwrap();
        }
        process.close_stdin().await.unwrap();
        let told = story(&process).await;
        assert_eq!(told.stdout(), "one two three");
        assert_eq!(told.exit, Some(0));
        let refused = process.write("more").await.unwrap_err();
        assert!(matches!(refused, Error::StdinClosed { .. }), "{refused}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_input_there_is_none() {
    on_every_place(async |place| {
        let process = place.start(sh("cat; echo end")).await.unwrap();
        assert_eq!(story(&process).await.stdout(), "end\n");
        let refused = process.write("x").await.unwrap_err();
        assert!(matches!(refused, Error::StdinClosed { .. }), "{refused}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_fits_anywhere_goes_through() {
    on_every_place(async |place| {
        let process = place.start(sh("cat").stdin()).await.unwrap();
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
async fn the_end_of_input_is_typed_on_a_terminal() {
    on_every_place(async |place| {
        let process = place
            .start(sh("stty -echo; echo ready; cat; echo end").tty())
            .await
            .unwrap();
        let mut wake = process.wake();
        soon("the first line", wake.wait_for(|last| *last > 0))
            .await
            .unwrap();
        process.write("line\n").await.unwrap();
        process.close_stdin().await.unwrap();
        assert_eq!(story(&process).await.stdout(), "ready\r\nline\r\nend\r\n");
    })
    .await;
}

//! Tests the events of a process and their order.

use outpost_testkit::{Event, Start, programs, sh};

use crate::{over_each_transport, ready, ready_with};

#[tokio::test]
async fn output_exit_and_close_come_in_order() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        client
            .start(sh("p", "printf out; read x; printf err >&2; exit 7").stdin())
            .await;
        client.wait_output("p", "out").await;
        client.write("p", "\n", "w").await;
        let log = client.closed("p").await;
        let output = |seq, stream: &str, bytes: &str| Event::Output {
            seq,
            stream: stream.to_owned(),
            bytes: bytes.into(),
        };
        let expected = [
            output(1, "stdout", "out"),
            output(2, "stderr", "err"),
            Event::Exited {
                seq: 3,
                code: 7,
                denied: false,
            },
            Event::Closed { seq: 4 },
        ];
        assert_eq!(log.events, expected);
    })
    .await;
}

#[tokio::test]
async fn silent_process_has_two_events() {
    let (_server, client) = ready().await;
    let log = client.run(Start::new("p", &["true"])).await;
    assert_eq!(log.kinds(), ["exited", "closed"]);
}

#[tokio::test]
async fn output_before_the_exit_is_numbered_before_it() {
    let (_server, client) = ready().await;
    let count = 40;
    for n in 0..count {
        let script = "head -c 100000 /dev/zero; head -c 3000 /dev/zero >&2";
        client.request_start(sh(&format!("p{n}"), script)).await;
    }
    for n in 0..count {
        let log = client.closed(&format!("p{n}")).await;
        assert_eq!(log.stream("stdout").len(), 100_000);
        assert_eq!(log.stream("stderr").len(), 3000);
        let (exit, _) = log.exit().expect("an exit");
        assert_eq!(exit, log.events.len() as u64 - 1, "{:?}", log.kinds());
    }
}

#[tokio::test]
async fn grandchild_holding_the_output_keeps_the_process_open() {
    let (server, client) = ready().await;
    let go = server.dir().join("go");
    let script = format!(
        "(while [ ! -e {} ]; do sleep 0.02; done; echo late) & echo early; exit 0",
        go.display()
    );
    client.start(sh("p", &script)).await;
    let log = client.exited("p").await;
    assert_eq!((log.text().as_str(), log.code()), ("early\n", 0));
    // Another process has started and ended, and this one is still not closed.
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.event_log("p").is_closed());

    std::fs::write(&go, "").expect("a file");
    let log = client.closed("p").await;
    assert_eq!(log.text(), "early\nlate\n");
    let kinds = log.kinds();
    let exit = kinds.iter().position(|kind| *kind == "exited");
    assert_eq!(exit, Some(1), "{kinds:?}");
    assert_eq!(kinds[2..], ["output", "closed"], "{kinds:?}");
}

#[tokio::test]
async fn natural_exit_kills_nothing() {
    let (server, client) = ready().await;
    let log = client.run(sh("p", programs::FORKS_AND_LEAVES)).await;
    assert_eq!(log.code(), 0);
    // The server and the leftover process.
    server.tag().alive(2).await;
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.terminate("p").await);
    assert_eq!(server.tag().living().len(), 2);
}

#[tokio::test]
async fn small_output_is_sent_at_once() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf 'name? '; read name; printf \"hello $name\"").stdin())
        .await;
    client.wait_output("p", "name? ").await;
    client.write("p", "you\n", "w").await;
    assert_eq!(client.closed("p").await.text(), "name? hello you");
}

#[tokio::test]
async fn no_byte_is_altered() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        let file = server.dir().join("bytes");
        // Every byte value at every offset from the boundaries of buffers and base64 groups.
        let bytes: Vec<u8> = (0..1024 * 1024_u32).map(|n| (n ^ (n >> 8)) as u8).collect();
        std::fs::write(&file, &bytes).expect("a file");
        let file = file.to_str().expect("UTF-8");
        let log = client.run(Start::new("p", &["cat", file])).await;
        assert!(log.stream("stdout") == bytes, "{} bytes came", log.bytes());
        let script = format!("stty raw; cat {file}");
        let log = client.run(sh("pty", &script).tty()).await;
        assert!(log.stream("pty") == bytes, "{} bytes came", log.bytes());
    })
    .await;
}

#[tokio::test]
async fn nothing_is_lost_before_the_start_response() {
    // Little is retained, so output that isn't read in time is dropped.
    let (_server, client) = ready_with(&["--retain-bytes", "64KiB"]).await;
    for n in 0..60 {
        let id = format!("p{n}");
        let start = Start::new(&id, &["head", "-c", "1000000", "/dev/zero"]);
        assert_eq!(client.run(start).await.bytes(), 1_000_000);
    }
}

#[tokio::test]
async fn concurrent_streams_lose_nothing() {
    let (_server, client) = ready().await;
    let script = "i=0; while [ $i -lt 3000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let log = client.run(sh("p", script)).await;
    let expected = |letter| {
        (0..3000)
            .map(|i| format!("{letter}{i}\n"))
            .collect::<String>()
    };
    assert_eq!(log.stdout(), expected('o'));
    assert_eq!(log.stderr(), expected('e'));
}

#[tokio::test]
async fn flood_is_sent_in_large_chunks() {
    let (_server, client) = ready().await;
    let mebibytes = 32;
    client.only_count("p");
    let size = format!("{mebibytes}M");
    client
        .start(Start::new("p", &["head", "-c", &size, "/dev/zero"]))
        .await;
    client.wait_count("p", mebibytes * 1024 * 1024).await;
    let counted = client.counted("p");
    let average = counted.bytes / counted.chunks as usize;
    assert!(average > 4096, "{average} bytes on average");
    client
        .event_log_until("p", "the close", |log| log.is_closed())
        .await;
}

#[tokio::test]
async fn events_are_ordered_per_process() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        for n in 0..40 {
            let script = "echo a; echo b >&2; echo c; exit 3";
            client.request_start(sh(&format!("p{n}"), script)).await;
        }
        for n in 0..40 {
            let log = client.closed(&format!("p{n}")).await;
            assert_eq!(
                (log.stdout().as_str(), log.stderr().as_str()),
                ("a\nc\n", "b\n")
            );
            assert_eq!(log.code(), 3);
        }
    })
    .await;
}

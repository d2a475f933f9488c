//! What is told of a process, and in which order.

use outpost_testkit::{Event, Start, programs, sh};

use crate::{over_each_transport, ready, ready_with};

#[tokio::test]
async fn output_exit_and_close_come_in_order() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        client
            .start(sh("p", "printf out; read x; printf err >&2; exit 7").stdin())
            .await;
        client.sees("p", "out").await;
        client.write("p", "\n", "w").await;
        let story = client.closed("p").await;
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
        assert_eq!(story.events, expected);
    })
    .await;
}

#[tokio::test]
async fn a_process_without_output_has_two_events() {
    let (_server, client) = ready().await;
    let story = client.run(Start::new("p", &["true"])).await;
    assert_eq!(story.kinds(), ["exited", "closed"]);
}

#[tokio::test]
async fn what_was_written_before_the_exit_is_numbered_before_it() {
    let (_server, client) = ready().await;
    let count = 40;
    for n in 0..count {
        let script = "head -c 100000 /dev/zero; head -c 3000 /dev/zero >&2";
        client.request_start(sh(&format!("p{n}"), script)).await;
    }
    for n in 0..count {
        let story = client.closed(&format!("p{n}")).await;
        assert_eq!(story.stream("stdout").len(), 100_000);
        assert_eq!(story.stream("stderr").len(), 3000);
        let (exit, _) = story.exit().expect("an exit");
        assert_eq!(exit, story.events.len() as u64 - 1, "{:?}", story.kinds());
    }
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_keeps_the_process_open() {
    let (server, client) = ready().await;
    let go = server.folder().join("go");
    let script = format!(
        "(while [ ! -e {} ]; do sleep 0.02; done; echo late) & echo early; exit 0",
        go.display()
    );
    client.start(sh("p", &script)).await;
    let story = client.exited("p").await;
    assert_eq!((story.text().as_str(), story.code()), ("early\n", 0));
    // Something else happens meanwhile, and the process is still not closed.
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.story("p").is_closed());

    std::fs::write(&go, "").expect("a file");
    let story = client.closed("p").await;
    assert_eq!(story.text(), "early\nlate\n");
    let kinds = story.kinds();
    let exit = kinds.iter().position(|kind| *kind == "exited");
    assert_eq!(exit, Some(1), "{kinds:?}");
    assert_eq!(kinds[2..], ["output", "closed"], "{kinds:?}");
}

#[tokio::test]
async fn a_natural_exit_kills_nothing() {
    let (server, client) = ready().await;
    let story = client.run(sh("p", programs::FORKS_AND_LEAVES)).await;
    assert_eq!(story.code(), 0);
    // The server and what the process left.
    server.mark().alive(2).await;
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.terminate("p").await);
    assert_eq!(server.mark().living().len(), 2);
}

#[tokio::test]
async fn small_outputs_go_out_at_once() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf 'name? '; read name; printf \"hello $name\"").stdin())
        .await;
    client.sees("p", "name? ").await;
    client.write("p", "you\n", "w").await;
    assert_eq!(client.closed("p").await.text(), "name? hello you");
}

#[tokio::test]
async fn no_byte_is_altered() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        let file = server.folder().join("bytes");
        // Each value, at each distance from the borders of buffers and of base64.
        let bytes: Vec<u8> = (0..1024 * 1024_u32).map(|n| (n ^ (n >> 8)) as u8).collect();
        std::fs::write(&file, &bytes).expect("a file");
        let file = file.to_str().expect("UTF-8");
        let story = client.run(Start::new("p", &["cat", file])).await;
        assert!(
            story.stream("stdout") == bytes,
            "{} bytes came",
            story.bytes()
        );
        let script = format!("stty raw; cat {file}");
        let story = client.run(sh("pty", &script).tty()).await;
        assert!(story.stream("pty") == bytes, "{} bytes came", story.bytes());
    })
    .await;
}

#[tokio::test]
async fn nothing_is_lost_between_the_start_and_its_answer() {
    // Little is retained, so that what nobody has taken in time is gone.
    let (_server, client) = ready_with(&["--retain-bytes", "64KiB"]).await;
    for n in 0..60 {
        let id = format!("p{n}");
        let start = Start::new(&id, &["head", "-c", "1000000", "/dev/zero"]);
        assert_eq!(client.run(start).await.bytes(), 1_000_000);
    }
}

#[tokio::test]
async fn two_streams_side_by_side_lose_nothing() {
    let (_server, client) = ready().await;
    let script = "i=0; while [ $i -lt 3000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let story = client.run(sh("p", script)).await;
    let expected = |letter| {
        (0..3000)
            .map(|i| format!("{letter}{i}\n"))
            .collect::<String>()
    };
    assert_eq!(story.stdout(), expected('o'));
    assert_eq!(story.stderr(), expected('e'));
}

#[tokio::test]
async fn a_flood_is_gathered_into_large_chunks() {
    let (_server, client) = ready().await;
    let mebibytes = 32;
    client.only_count("p");
    let size = format!("{mebibytes}M");
    client
        .start(Start::new("p", &["head", "-c", &size, "/dev/zero"]))
        .await;
    client.counts("p", mebibytes * 1024 * 1024).await;
    let counted = client.counted("p");
    let average = counted.bytes / counted.chunks as usize;
    assert!(average > 4096, "{average} bytes on average");
    client
        .story_until("p", "the close", |story| story.is_closed())
        .await;
}

#[tokio::test]
async fn events_of_many_processes_are_in_order_for_each() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        for n in 0..40 {
            let script = "echo a; echo b >&2; echo c; exit 3";
            client.request_start(sh(&format!("p{n}"), script)).await;
        }
        for n in 0..40 {
            let story = client.closed(&format!("p{n}")).await;
            assert_eq!(
                (story.stdout().as_str(), story.stderr().as_str()),
                ("a\nc\n", "b\n")
            );
            assert_eq!(story.code(), 3);
        }
    })
    .await;
}

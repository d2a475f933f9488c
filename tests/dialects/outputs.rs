//! Tests output, collected until the exit or streamed.

use std::time::{Duration, Instant};

use outpost_testkit::programs;
use serde_json::json;

use super::dialect::{Dialect, with_every_dialect};

#[tokio::test]
async fn streamed_output_precedes_the_end_and_is_not_repeated() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdoutStderr": true});
        let script = "i=0; while [ $i -lt 300 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
        // `Run::end` checks that no delta follows the exit.
        let outcome = dialect.run(client, "p", script, more).await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
        let lines = |word: &str| (0..300).map(|i| format!("{word}{i}\n")).collect::<String>();
        assert_eq!(dialect.received_output(client, "p", "stdout"), lines("out"));
        assert_eq!(dialect.received_output(client, "p", "stderr"), lines("err"));
        for delta in dialect.deltas(client, "p") {
            assert_eq!(delta["capReached"], false);
            assert_eq!(
                delta.as_object().map(serde_json::Map::len),
                Some(4),
                "{delta}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn output_is_sent_as_it_is_written() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdoutStderr": true, "streamStdin": true});
        let run = dialect
            .begin(client, "p", "echo first; read x; echo last", more)
            .await;
        dialect.wait_output(client, "p", "first").await;
        assert!(!run.is_over(client));
        dialect.write_text(client, "p", "\n").await;
        run.end(client).await;
        assert_eq!(
            dialect.received_output(client, "p", "stdout"),
            "first\nlast\n"
        );
    })
    .await;
}

#[tokio::test]
async fn invalid_utf8_is_replaced_in_text_and_kept_in_deltas() {
    with_every_dialect(async |dialect, _, client| {
        let script = r"printf 'a\377b\303\251\303'; printf '\200' >&2";
        let outcome = dialect.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout, "a\u{fffd}b\u{e9}\u{fffd}");
        assert_eq!(outcome.stderr, "\u{fffd}");
        let more = json!({"streamStdoutStderr": true});
        dialect.run(client, "q", script, more).await;
        let deltas = dialect.deltas(client, "q");
        let stdout = deltas.iter().filter(|delta| delta["stream"] == "stdout");
        let bytes: Vec<_> = stdout
            .map(|delta| outpost_testkit::unbase64(&delta["deltaBase64"]))
            .collect();
        assert_eq!(bytes.concat(), b"a\xffb\xc3\xa9\xc3");
    })
    .await;
}

#[tokio::test]
async fn held_pipe_delays_the_end_by_two_seconds() {
    with_every_dialect(async |dialect, _, client| {
        let since = Instant::now();
        let script = programs::HOLDS_THE_PIPE;
        let mut runs = Vec::new();
        for (id, streams) in [("kept", false), ("streamed", true)] {
            let more = json!({"streamStdoutStderr": streams});
            runs.push((id, dialect.begin(client, id, script, more).await));
        }
        for (id, run) in runs {
            let outcome = run.end(client).await;
            let took = since.elapsed();
            assert!(took > Duration::from_millis(1900), "{took:?}");
            assert!(took < Duration::from_secs(10), "{took:?}");
            assert_eq!(outcome.exit_code, 0);
            let received = outcome.stdout + &dialect.received_output(client, id, "stdout");
            assert_eq!(received, "ready\n");
            if dialect == Dialect::Spawn {
                assert_eq!(outcome.whole["outputDrainTimedOut"], true);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn late_output_is_collected() {
    with_every_dialect(async |dialect, _, client| {
        let script = "(sleep 0.3; echo late) & echo early";
        let outcome = dialect.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout, "early\nlate\n");
        if dialect == Dialect::Spawn {
            assert_eq!(outcome.whole["outputDrainTimedOut"], false);
        }
    })
    .await;
}

#[tokio::test]
async fn large_output_is_complete() {
    with_every_dialect(async |dialect, _, client| {
        let bytes = 3_000_000;
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x; echo end >&2");
        let uncapped = match dialect {
            Dialect::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Dialect::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
        };
        let outcome = dialect.run(client, "p", &script, uncapped.clone()).await;
        assert_eq!(outcome.stdout.len(), bytes);
        assert_eq!(outcome.stderr, "end\n");
        let mut more = uncapped;
        more["streamStdoutStderr"] = json!(true);
        dialect.run(client, "q", &script, more).await;
        assert_eq!(dialect.received_output(client, "q", "stdout").len(), bytes);
    })
    .await;
}

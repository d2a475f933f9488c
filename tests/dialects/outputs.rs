//! What a process writes, at the end or when it comes.

use std::time::{Duration, Instant};

use outpost_testkit::programs;
use serde_json::json;

use super::face::{Face, everywhere};

#[tokio::test]
async fn what_is_streamed_comes_before_the_end_and_is_not_repeated() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdoutStderr": true});
        let script = "i=0; while [ $i -lt 300 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
        // Run::end checks that no delta comes behind it.
        let outcome = face.run(client, "p", script, more).await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
        let lines = |word: &str| (0..300).map(|i| format!("{word}{i}\n")).collect::<String>();
        assert_eq!(face.told(client, "p", "stdout"), lines("out"));
        assert_eq!(face.told(client, "p", "stderr"), lines("err"));
        for delta in face.deltas(client, "p") {
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
async fn output_is_told_when_it_comes() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdoutStderr": true, "streamStdin": true});
        let run = face
            .begin(client, "p", "echo first; read x; echo last", more)
            .await;
        face.sees(client, "p", "first").await;
        assert!(!run.is_over(client));
        face.types(client, "p", "\n").await;
        run.end(client).await;
        assert_eq!(face.told(client, "p", "stdout"), "first\nlast\n");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_in_text_and_kept_in_deltas() {
    everywhere(async |face, _, client| {
        let script = r"printf 'a\377b\303\251\303'; printf '\200' >&2";
        let outcome = face.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout, "a\u{fffd}b\u{e9}\u{fffd}");
        assert_eq!(outcome.stderr, "\u{fffd}");
        let more = json!({"streamStdoutStderr": true});
        face.run(client, "q", script, more).await;
        let deltas = face.deltas(client, "q");
        let stdout = deltas.iter().filter(|delta| delta["stream"] == "stdout");
        let bytes: Vec<_> = stdout
            .map(|delta| outpost_testkit::unbase64(&delta["deltaBase64"]))
            .collect();
        assert_eq!(bytes.concat(), b"a\xffb\xc3\xa9\xc3");
    })
    .await;
}

#[tokio::test]
async fn a_pipe_that_somebody_holds_keeps_the_end_for_two_seconds() {
    everywhere(async |face, _, client| {
        let begun = Instant::now();
        let script = programs::HOLDS_THE_PIPE;
        let mut runs = Vec::new();
        for (id, streams) in [("kept", false), ("streamed", true)] {
            let more = json!({"streamStdoutStderr": streams});
            runs.push((id, face.begin(client, id, script, more).await));
        }
        for (id, run) in runs {
            let outcome = run.end(client).await;
            let took = begun.elapsed();
            assert!(took > Duration::from_millis(1900), "{took:?}");
            assert!(took < Duration::from_secs(10), "{took:?}");
            assert_eq!(outcome.exit_code, 0);
            let told = outcome.stdout + &face.told(client, id, "stdout");
            assert_eq!(told, "ready\n");
            if face == Face::Spawn {
                assert_eq!(outcome.whole["outputDrainTimedOut"], true);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_comes_soon_after_the_exit_is_collected() {
    everywhere(async |face, _, client| {
        let script = "(sleep 0.3; echo late) & echo early";
        let outcome = face.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout, "early\nlate\n");
        if face == Face::Spawn {
            assert_eq!(outcome.whole["outputDrainTimedOut"], false);
        }
    })
    .await;
}

#[tokio::test]
async fn much_output_is_all_there() {
    everywhere(async |face, _, client| {
        let bytes = 3_000_000;
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x; echo end >&2");
        let uncapped = match face {
            Face::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Face::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
        };
        let outcome = face.run(client, "p", &script, uncapped.clone()).await;
        assert_eq!(outcome.stdout.len(), bytes);
        assert_eq!(outcome.stderr, "end\n");
        let mut more = uncapped;
        more["streamStdoutStderr"] = json!(true);
        face.run(client, "q", &script, more).await;
        assert_eq!(face.told(client, "q", "stdout").len(), bytes);
    })
    .await;
}

//! `outputBytesCap`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::face::{Face, everywhere, introduce};
use crate::free;

fn reached(outcome: &Value) -> (bool, bool) {
    let flag = |name: &str| outcome[name].as_bool().expect("a flag");
    (flag("stdoutCapReached"), flag("stderrCapReached"))
}

#[tokio::test]
async fn each_stream_is_cut_at_the_cap() {
    everywhere(async |face, _, client| {
        let more = json!({"outputBytesCap": 3});
        let script = "printf abcdef; printf uv >&2; exit 4";
        let outcome = face.run(client, "p", script, more).await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("abc", "uv"));
        assert_eq!(outcome.exit_code, 4);
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, false));
        }
    })
    .await;
}

#[tokio::test]
async fn output_that_ends_exactly_at_the_cap_has_reached_it() {
    everywhere(async |face, _, client| {
        let more = json!({"outputBytesCap": 3});
        let outcome = face
            .run(client, "p", "printf abc; printf uvw >&2", more)
            .await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("abc", "uvw"));
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, true));
        }
        let more = json!({"outputBytesCap": 3, "streamStdoutStderr": true});
        let outcome = face
            .run(client, "q", "printf abc; printf uvw >&2", more)
            .await;
        for stream in ["stdout", "stderr"] {
            let deltas = face.deltas(client, "q");
            let last = deltas.iter().rfind(|delta| delta["stream"] == stream);
            assert_eq!(last.expect("a delta")["capReached"], true);
        }
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, true));
        }
    })
    .await;
}

#[tokio::test]
async fn the_last_delta_of_a_capped_stream_says_so_and_the_process_runs_on() {
    everywhere(async |face, _, client| {
        let more = json!({"outputBytesCap": 3, "streamStdoutStderr": true, "streamStdin": true});
        // It writes far more than any window, and has to live through it.
        let script = "printf a; read x; printf bcdef; head -c 8000000 /dev/zero; \
                      printf xy >&2; read y; exit 6";
        let run = face.begin(client, "p", script, more).await;
        face.sees(client, "p", "a").await;
        face.types(client, "p", "\n").await;
        face.sees(client, "p", "xy").await;
        face.types(client, "p", "\n").await;
        let outcome = run.end(client).await;
        assert_eq!(outcome.exit_code, 6);
        assert_eq!(face.told(client, "p", "stdout"), "abc");
        assert_eq!(face.told(client, "p", "stderr"), "xy");
        let deltas = face.deltas(client, "p");
        let flags: Vec<_> = deltas
            .iter()
            .filter(|delta| delta["stream"] == "stdout")
            .map(|delta| delta["capReached"].as_bool())
            .collect();
        let (last, others) = flags.split_last().expect("there are some");
        assert_eq!(*last, Some(true));
        assert!(others.iter().all(|flag| *flag == Some(false)), "{flags:?}");
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, false));
        }
    })
    .await;
}

#[tokio::test]
async fn a_mebibyte_without_one() {
    everywhere(async |face, _, client| {
        let script = "head -c 1048577 /dev/zero | tr '\\0' x";
        let outcome = face.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout.len(), 1024 * 1024);
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, false));
        }
        let more = json!({"streamStdoutStderr": true});
        face.run(client, "q", script, more).await;
        assert_eq!(face.told(client, "q", "stdout").len(), 1024 * 1024);
    })
    .await;
}

#[tokio::test]
async fn nothing_at_all_with_a_cap_of_zero() {
    everywhere(async |face, _, client| {
        let more = json!({"outputBytesCap": 0});
        let outcome = face.run(client, "p", "echo x; exit 2", more).await;
        assert_eq!((outcome.exit_code, &*outcome.stdout), (2, ""));
        let more = json!({"outputBytesCap": 0, "streamStdoutStderr": true});
        face.run(client, "q", "echo x", more).await;
        let deltas = face.deltas(client, "q");
        assert_eq!(deltas.len(), 1, "{deltas:?}");
        assert_eq!(
            (&deltas[0]["deltaBase64"], &deltas[0]["capReached"]),
            (&json!(""), &json!(true))
        );
    })
    .await;
}

#[tokio::test]
async fn without_a_cap_there_is_none() {
    everywhere(async |face, _, client| {
        let uncapped = match face {
            Face::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Face::Command => json!({"outputBytesCap": u64::MAX, "disableTimeout": true}),
        };
        let script = "head -c 20000000 /dev/zero | tr '\\0' x; exit 3";
        let outcome = face.run(client, "p", script, uncapped).await;
        assert_eq!(outcome.exit_code, 3);
        assert_eq!(outcome.stdout.len(), 20_000_000, "without a cap it is all");
    })
    .await;
}

#[tokio::test]
async fn no_answer_is_larger_than_a_message() {
    let mut server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let uncapped = |face| match face {
        Face::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
        Face::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
    };
    // What a quote takes on the wire is two bytes. The error comes last, and has its room.
    let script = "head -c 40000000 /dev/zero | tr '\\0' '\"'; echo late >&2; exit 3";
    for face in [Face::Spawn, Face::Command] {
        let outcome = face.run(&client, "p", script, uncapped(face)).await;
        assert_eq!(outcome.exit_code, 3, "the process doesn't notice");
        assert_eq!(outcome.stderr, "late\n");
        let kept = outcome.stdout.len();
        assert!((31 << 20..32 << 20).contains(&kept), "{kept}");
        if face == Face::Spawn {
            assert_eq!(reached(&outcome.whole), (true, false));
        }
    }
    // An answer of one has no word for it, so the log has.
    server.signal(Signal::TERM);
    let log = server.ended().await.stderr;
    assert_eq!(
        log.matches("output beyond the largest answer was dropped")
            .count(),
        2,
        "{log}"
    );
}

//! Tests `outputBytesCap`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::dialect::{Dialect, app_handshake, with_every_dialect};
use crate::unsandboxed_outpost;

fn cap_reached(outcome: &Value) -> (bool, bool) {
    let flag = |name: &str| outcome[name].as_bool().expect("a flag");
    (flag("stdoutCapReached"), flag("stderrCapReached"))
}

#[tokio::test]
async fn each_stream_is_cut_at_the_cap() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"outputBytesCap": 3});
        let script = "printf abcdef; printf uv >&2; exit 4";
        let outcome = dialect.run(client, "p", script, more).await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("abc", "uv"));
        assert_eq!(outcome.exit_code, 4);
        match dialect {
            Dialect::Spawn => assert_eq!(cap_reached(&outcome.whole), (true, false)),
            Dialect::Command => {
                assert_eq!(outcome.whole["stdoutCapReached"], true);
                assert!(outcome.whole.get("stderrCapReached").is_none());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn output_ending_at_the_cap_has_reached_it() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"outputBytesCap": 3});
        let outcome = dialect
            .run(client, "p", "printf abc; printf uvw >&2", more)
            .await;
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("abc", "uvw"));
        if dialect == Dialect::Spawn {
            assert_eq!(cap_reached(&outcome.whole), (true, true));
        }
        let more = json!({"outputBytesCap": 3, "streamStdoutStderr": true});
        let outcome = dialect
            .run(client, "q", "printf abc; printf uvw >&2", more)
            .await;
        for stream in ["stdout", "stderr"] {
            let deltas = dialect.deltas(client, "q");
            let last = deltas.iter().rfind(|delta| delta["stream"] == stream);
            assert_eq!(last.expect("a delta")["capReached"], true);
        }
        if dialect == Dialect::Spawn {
            assert_eq!(cap_reached(&outcome.whole), (true, true));
        }
    })
    .await;
}

#[tokio::test]
async fn last_delta_of_a_capped_stream_is_marked() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"outputBytesCap": 3, "streamStdoutStderr": true, "streamStdin": true});
        // It writes far more than any window and must not be blocked.
        let script = "printf a; read x; printf bcdef; head -c 8000000 /dev/zero; \
                      printf xy >&2; read y; exit 6";
        let run = dialect.begin(client, "p", script, more).await;
        dialect.wait_output(client, "p", "a").await;
        dialect.write_text(client, "p", "\n").await;
        dialect.wait_output(client, "p", "xy").await;
        dialect.write_text(client, "p", "\n").await;
        let outcome = run.end(client).await;
        assert_eq!(outcome.exit_code, 6);
        assert_eq!(dialect.received_output(client, "p", "stdout"), "abc");
        assert_eq!(dialect.received_output(client, "p", "stderr"), "xy");
        let deltas = dialect.deltas(client, "p");
        let flags: Vec<_> = deltas
            .iter()
            .filter(|delta| delta["stream"] == "stdout")
            .map(|delta| delta["capReached"].as_bool())
            .collect();
        let (last, others) = flags.split_last().expect("there are some");
        assert_eq!(*last, Some(true));
        assert!(others.iter().all(|flag| *flag == Some(false)), "{flags:?}");
        if dialect == Dialect::Spawn {
            assert_eq!(cap_reached(&outcome.whole), (true, false));
        }
    })
    .await;
}

#[tokio::test]
async fn default_cap_is_a_mebibyte() {
    with_every_dialect(async |dialect, _, client| {
        let script = "head -c 1048577 /dev/zero | tr '\\0' x";
        let outcome = dialect.run(client, "p", script, json!({})).await;
        assert_eq!(outcome.stdout.len(), 1024 * 1024);
        if dialect == Dialect::Spawn {
            assert_eq!(cap_reached(&outcome.whole), (true, false));
        }
        let more = json!({"streamStdoutStderr": true});
        dialect.run(client, "q", script, more).await;
        assert_eq!(
            dialect.received_output(client, "q", "stdout").len(),
            1024 * 1024
        );
    })
    .await;
}

#[tokio::test]
async fn cap_of_zero_returns_nothing() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"outputBytesCap": 0});
        let outcome = dialect.run(client, "p", "echo x; exit 2", more).await;
        assert_eq!((outcome.exit_code, &*outcome.stdout), (2, ""));
        let more = json!({"outputBytesCap": 0, "streamStdoutStderr": true});
        dialect.run(client, "q", "echo x", more).await;
        let deltas = dialect.deltas(client, "q");
        assert_eq!(deltas.len(), 1, "{deltas:?}");
        assert_eq!(
            (&deltas[0]["deltaBase64"], &deltas[0]["capReached"]),
            (&json!(""), &json!(true))
        );
    })
    .await;
}

#[tokio::test]
async fn disabled_cap_returns_everything() {
    with_every_dialect(async |dialect, _, client| {
        let uncapped = match dialect {
            Dialect::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Dialect::Command => json!({"outputBytesCap": u64::MAX, "disableTimeout": true}),
        };
        let script = "head -c 20000000 /dev/zero | tr '\\0' x; exit 3";
        let outcome = dialect.run(client, "p", script, uncapped).await;
        assert_eq!(outcome.exit_code, 3);
        assert_eq!(
            outcome.stdout.len(),
            20_000_000,
            "without a cap all output is kept"
        );
    })
    .await;
}

#[tokio::test]
async fn response_fits_a_message() {
    let mut server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let uncapped = |dialect| match dialect {
        Dialect::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
        Dialect::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
    };
    // A quote takes two bytes in JSON. stderr comes last and still has space.
    let script = "head -c 40000000 /dev/zero | tr '\\0' '\"'; echo late >&2; exit 3";
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let outcome = dialect.run(&client, "p", script, uncapped(dialect)).await;
        assert_eq!(outcome.exit_code, 3, "the process is not affected");
        assert_eq!(outcome.stderr, "late\n");
        let kept = outcome.stdout.len();
        assert!((31 << 20..32 << 20).contains(&kept), "{kept}");
        match dialect {
            Dialect::Spawn => assert_eq!(cap_reached(&outcome.whole), (true, false)),
            Dialect::Command => {
                assert_eq!(outcome.whole["stdoutCapReached"], true);
                assert!(outcome.whole.get("stderrCapReached").is_none());
            }
        }
    }
    server.signal(Signal::TERM);
    let log = server.wait().await.stderr;
    assert_eq!(
        log.matches("buffered output truncated to the largest response")
            .count(),
        2,
        "{log}"
    );
}

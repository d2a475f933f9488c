//! Tests that a client that doesn't read blocks only the processes it streams.

use std::time::Duration;

use outpost_testkit::{ProcStats, deadline};
use serde_json::json;

use super::dialect::{Dialect, app_handshake};
use crate::unsandboxed_outpost;

/// The window, the largest socket buffers, and the child's pipe.
const MAX_BUFFERED: u64 = 16 * 1024 * 1024;
/// A process that has written nothing for this long is blocked.
const QUIET: Duration = Duration::from_millis(400);

#[tokio::test]
async fn streams_block_and_resume_with_the_reader() {
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let server = unsandboxed_outpost().start().await;
        let client = server.connect().await;
        app_handshake(&client).await;
        let before = server.stats().peak_rss_kib();
        let more = match dialect {
            Dialect::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Dialect::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
        };
        let mut more = more;
        more["streamStdoutStderr"] = json!(true);
        more["streamStdin"] = json!(true);
        let bytes = 24 * 1024 * 1024;
        let script = format!("echo $$ >&2; read x; exec head -c {bytes} /dev/zero");
        let run = dialect.begin(&client, "p", &script, more).await;
        dialect.wait_output(&client, "p", "\n").await;
        let pid = dialect
            .received_output(&client, "p", "stderr")
            .trim()
            .parse();
        let process = ProcStats::of(pid.expect("a number"));
        client.stop_reading();
        let go = dialect.params_for("p", json!({"deltaBase64": "Cg=="}));
        client.request(dialect.write(), go).await;
        let written = deadline::expect_soon("it to be blocked", async {
            let mut before = process.written();
            loop {
                // sleep: a blocked process produces no event
                tokio::time::sleep(QUIET).await;
                let now = process.written();
                if now == before && now > 0 {
                    return now;
                }
                before = now;
            }
        })
        .await;
        assert!(written < MAX_BUFFERED, "{written} bytes");
        let grown = server.stats().peak_rss_kib().saturating_sub(before);
        assert!(grown < 24 * 1024, "the server grew by {grown} KiB");
        client.resume_reading();
        assert_eq!(run.end(&client).await.exit_code, 0);
        assert_eq!(dialect.received_output(&client, "p", "stdout").len(), bytes);
    }
}

#[tokio::test]
async fn unstreamed_output_is_not_blocked() {
    for dialect in [Dialect::Spawn, Dialect::Command] {
        for more in [json!({}), json!({"streamStdoutStderr": true})] {
            let server = unsandboxed_outpost().start().await;
            let client = server.connect().await;
            app_handshake(&client).await;
            let file = server.dir().join("done");
            let streamed = more["streamStdoutStderr"] == true;
            let mut more = more;
            more["outputBytesCap"] = json!(10);
            more["streamStdin"] = json!(true);
            // Much output on this connection, which the client doesn't read.
            let mut flood = match dialect {
                Dialect::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
                Dialect::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
            };
            flood["streamStdoutStderr"] = json!(true);
            let script = format!(
                "printf 0123456789; read x; head -c 30000000 /dev/zero; touch '{}'",
                file.display()
            );
            let run = dialect.begin(&client, "p", &script, more).await;
            let flood = dialect
                .begin(&client, "f", "exec cat /dev/zero", flood)
                .await;
            dialect.wait_output(&client, "f", "\0").await;
            if streamed {
                dialect.wait_output(&client, "p", "0123456789").await;
            }
            client.stop_reading();
            let go = dialect.params_for("p", json!({"deltaBase64": "Cg=="}));
            client.request(dialect.write(), go).await;
            deadline::poll_until("the end of unblocked processes", || {
                file.exists().then_some(())
            })
            .await;
            client.resume_reading();
            assert_eq!(run.end(&client).await.exit_code, 0);
            client
                .call(dialect.kill(), dialect.params_for("f", json!({})))
                .await;
            assert_eq!(flood.end(&client).await.exit_code, 137);
        }
    }
}

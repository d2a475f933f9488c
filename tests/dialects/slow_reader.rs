//! A client that doesn't read holds back what it is told of, and nothing else.

use std::time::Duration;

use outpost_testkit::{Vitals, patience};
use serde_json::json;

use super::face::{Face, introduce};
use crate::free;

/// The window, what fits into the sockets' buffers at most, and the child's pipe.
const AHEAD: u64 = 16 * 1024 * 1024;
/// How long nothing must have been written to say that a process is held back.
const QUIET: Duration = Duration::from_millis(400);

#[tokio::test]
async fn streams_are_held_back_and_then_go_on() {
    for face in [Face::Spawn, Face::Command] {
        let server = free().start().await;
        let client = server.connect().await;
        introduce(&client).await;
        let before = server.vitals().peak_rss_kib();
        let more = match face {
            Face::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
            Face::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
        };
        let mut more = more;
        more["streamStdoutStderr"] = json!(true);
        more["streamStdin"] = json!(true);
        let bytes = 24 * 1024 * 1024;
        let script = format!("echo $$ >&2; read x; exec head -c {bytes} /dev/zero");
        let run = face.begin(&client, "p", &script, more).await;
        face.sees(&client, "p", "\n").await;
        let pid = face.told(&client, "p", "stderr").trim().parse();
        let process = Vitals::of(pid.expect("a number"));
        client.stop_reading();
        let go = face.about("p", json!({"deltaBase64": "Cg=="}));
        client.request(face.write(), go).await;
        let written = patience::soon("it to be held back", async {
            let mut before = process.written();
            loop {
                // sleep: being held back shows in nothing happening
                tokio::time::sleep(QUIET).await;
                let now = process.written();
                if now == before && now > 0 {
                    return now;
                }
                before = now;
            }
        })
        .await;
        assert!(written < AHEAD, "{written} bytes");
        let grown = server.vitals().peak_rss_kib().saturating_sub(before);
        assert!(grown < 24 * 1024, "the server grew by {grown} KiB");
        client.read_on();
        assert_eq!(run.end(&client).await.exit_code, 0);
        assert_eq!(face.told(&client, "p", "stdout").len(), bytes);
    }
}

#[tokio::test]
async fn what_is_told_at_the_end_or_not_at_all_is_not_held_back() {
    for face in [Face::Spawn, Face::Command] {
        for more in [json!({}), json!({"streamStdoutStderr": true})] {
            let server = free().start().await;
            let client = server.connect().await;
            introduce(&client).await;
            let file = server.folder().join("done");
            let streamed = more["streamStdoutStderr"] == true;
            let mut more = more;
            more["outputBytesCap"] = json!(10);
            more["streamStdin"] = json!(true);
            // A flood on the same connection, of which the client reads nothing.
            let mut flood = match face {
                Face::Spawn => json!({"outputBytesCap": null, "timeoutMs": null}),
                Face::Command => json!({"disableOutputCap": true, "disableTimeout": true}),
            };
            flood["streamStdoutStderr"] = json!(true);
            let script = format!(
                "printf 0123456789; read x; head -c 30000000 /dev/zero; touch '{}'",
                file.display()
            );
            let run = face.begin(&client, "p", &script, more).await;
            let flood = face.begin(&client, "f", "exec cat /dev/zero", flood).await;
            face.sees(&client, "f", "\0").await;
            if streamed {
                face.sees(&client, "p", "0123456789").await;
            }
            client.stop_reading();
            let go = face.about("p", json!({"deltaBase64": "Cg=="}));
            client.request(face.write(), go).await;
            patience::seen("the end of what is not held back", || {
                file.exists().then_some(())
            })
            .await;
            client.read_on();
            assert_eq!(run.end(&client).await.exit_code, 0);
            client.call(face.kill(), face.about("f", json!({}))).await;
            assert_eq!(flood.end(&client).await.exit_code, 137);
        }
    }
}

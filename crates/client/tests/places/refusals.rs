//! What isn't started, and why.

use outpost_client::{Error, Place, Sandbox, Start};

use crate::places::{on_every_place, sh, story};

/// Nothing here could confine a process: neither this program nor the server in it can be started as
/// a stage.
const NO_STAGES: &str = "sandbox intent cannot be enforced on this executor: this program has no stage to confine processes with";

async fn refusal(place: &dyn Place, start: Start) -> (i64, String) {
    match place.start(start).await.unwrap_err() {
        Error::StartFailed { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_everywhere() {
    on_every_place(async |place| {
        let no_argv: [&str; 0] = [];
        for (start, code, message) in [
            (
                Start::new(["no-such-program"]).cwd("/tmp"),
                -32603,
                "cannot execute \"no-such-program\": No such file or directory (os error 2)",
            ),
            (
                Start::new(["true"]).cwd("/no/such/folder"),
                -32603,
                "cannot enter directory \"/no/such/folder\": No such file or directory (os error 2)",
            ),
            (
                Start::new(no_argv).cwd("/tmp"),
                -32602,
                "argv must not be empty",
            ),
            (sh("true").id(""), -32602, "processId must not be empty"),
            (
                sh("true").id("x".repeat(257)),
                -32602,
                "processId must be at most 256 bytes long",
            ),
            (
                sh("true").size(0, 9),
                -32602,
                "size rows and cols must be greater than 0",
            ),
            (
                sh("true").sandbox(Sandbox::read_only("/").deny("/etc")),
                -32602,
                NO_STAGES,
            ),
            (
                sh("true").enforce_managed_network(None),
                -32602,
                "sandbox intent cannot be enforced on this executor: a managed network is not supported by this version",
            ),
        ] {
            assert_eq!(refusal(&*place, start).await, (code, message.to_owned()));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_taken_once() {
    on_every_place(async |place| {
        let first = place.start(sh("exec sleep 600").id("n")).await.unwrap();
        let taken = (-32600, "process n already exists".to_owned());
        assert_eq!(refusal(&*place, sh("true").id("n")).await, taken);
        first.terminate().await.unwrap();
        story(&first).await;
        assert_eq!(refusal(&*place, sh("true").id("n")).await, taken);
        // A failed start leaves nothing behind.
        refusal(&*place, Start::new(["no-such-program"]).cwd("/").id("m")).await;
        let second = place.start(sh("echo fine").id("m")).await.unwrap();
        assert_eq!(story(&second).await.stdout(), "fine\n");
    })
    .await;
}

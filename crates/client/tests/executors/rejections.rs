//! Rejected starts.

use outpost_client::{Error, ErrorKind, Executor, Sandbox, Start};

use crate::harness::{on_every_executor, read_all, sh};

/// Neither the test program nor its server has a sandbox helper.
const NO_HELPER: &str = "sandbox intent cannot be enforced on this executor: this program has no sandbox helper to confine processes with";

async fn rejection(executor: &dyn Executor, start: Start) -> (i64, String) {
    match executor.start(start).await.unwrap_err() {
        Error::StartFailed { code, message, .. } => (code, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_texts_are_equal_on_all_executors() {
    on_every_executor(async |executor| {
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
                NO_HELPER,
            ),
            (
                sh("true")
                    .sandbox(Sandbox::read_only("/"))
                    .enforce_managed_network(),
                -32602,
                "sandbox intent cannot be enforced on this executor: managed proxy mode requires proxy environment variables",
            ),
        ] {
            assert_eq!(rejection(&*executor, start).await, (code, message.to_owned()));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn process_id_can_be_used_once() {
    on_every_executor(async |executor| {
        let first = executor.start(sh("exec sleep 600").id("n")).await.unwrap();
        let taken = (-32600, "process n already exists".to_owned());
        assert_eq!(rejection(&*executor, sh("true").id("n")).await, taken);
        first.terminate().await.unwrap();
        read_all(&first).await;
        assert_eq!(rejection(&*executor, sh("true").id("n")).await, taken);
        // A failed start releases its id.
        rejection(&*executor, Start::new(["no-such-program"]).cwd("/").id("m")).await;
        let second = executor.start(sh("echo fine").id("m")).await.unwrap();
        assert_eq!(read_all(&second).await.stdout(), "fine\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn start_errors_have_the_same_kind_on_every_executor() {
    on_every_executor(async |executor| {
        for (start, kind, errno) in [
            (
                Start::new(["no-such-program"]).cwd("/tmp"),
                ErrorKind::ProgramNotFound,
                Some(2),
            ),
            (
                Start::new(["/etc/passwd"]).cwd("/tmp"),
                ErrorKind::ProgramNotExecutable,
                Some(13),
            ),
            (
                Start::new(["true"]).cwd("/no/such/folder"),
                ErrorKind::WorkingDirectory,
                Some(2),
            ),
            (sh("true").size(0, 9), ErrorKind::InvalidParams, None),
            (
                sh("true").sandbox(Sandbox::read_only("/").deny("/etc")),
                ErrorKind::Sandbox,
                None,
            ),
        ] {
            match executor.start(start).await.unwrap_err() {
                Error::StartFailed {
                    kind: actual,
                    errno: number,
                    ..
                } => assert_eq!((actual, number), (kind, errno)),
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
}

//! Tests every transport of the client.

use outpost_client::{Error, Executor as _, RemoteExecutor, RemoteOptions};
use outpost_testkit::{Transport, deadline};

use super::{connect, run, script};
use crate::outpost;

#[tokio::test(flavor = "multi_thread")]
async fn url_connects() {
    for transport in [Transport::WebSocket, Transport::Unix] {
        let server = outpost().on(transport).start().await;
        let remote = connect(&server.urls()[0]).await.unwrap();
        let done = run(&remote, script(&server, "echo there; exit 4")).await;
        assert_eq!(done, ("there\n".to_owned(), 4));
        remote.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn command_connects() {
    let server = outpost().start().await;
    let dir = tempfile::tempdir().unwrap();
    let exit_marker = dir.path().join("ended");
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", r#""$0" serve --listen stdio && : >"$1""#]);
    command.arg(crate::outpost().binary()).arg(&exit_marker);
    command.stderr(std::process::Stdio::null());
    let remote = RemoteExecutor::launch(command, RemoteOptions::default())
        .await
        .unwrap();
    let done = run(&remote, script(&server, "echo there; exit 4")).await;
    assert_eq!(done, ("there\n".to_owned(), 4));
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    // Its processes end with it: the test's server finds none with its tag.
    deadline::expect_soon("its exit", remote.close())
        .await
        .unwrap();
    assert!(exit_marker.exists(), "it was killed before it exited");
    let error = process.terminate().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "exec-server transport disconnected: the executor was closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_server_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}/none", dir.path().display());
    for url in ["ws://127.0.0.1:1", "http://x", socket.as_str()] {
        let error = connect(url).await.err().unwrap();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(url), "{error}");
        let cause = std::error::Error::source(&error).unwrap();
        let message = format!("{:#}", anyhow::Error::from(error.clone()));
        assert_eq!(
            message,
            format!("{error}: {cause}"),
            "the cause is not repeated"
        );
    }
    let command = std::process::Command::new("/no/such/server");
    let error = RemoteExecutor::launch(command, RemoteOptions::default())
        .await
        .err()
        .unwrap();
    assert_eq!(
        format!("{:#}", anyhow::Error::from(error)),
        "cannot connect to /no/such/server: cannot launch the server: No such file or directory (os error 2)"
    );
    // The port accepts connections but doesn't speak TLS.
    let server = outpost().start().await;
    let url = server.urls()[0].replace("ws://", "wss://");
    let error = connect(&url).await.err().unwrap();
    let message = format!("{:#}", anyhow::Error::from(error));
    assert!(message.contains("TLS"), "{message}");
}

//! Every way to reach a server.

use outpost_client::{Error, Place as _, Remote, RemoteOptions};
use outpost_testkit::{Transport, patience};

use super::{connect, run, script};
use crate::outpost;

#[tokio::test(flavor = "multi_thread")]
async fn by_url() {
    for transport in [Transport::WebSocket, Transport::Unix] {
        let server = outpost().on(transport).start().await;
        let remote = connect(&server.urls()[0]).await.unwrap();
        let done = run(&remote, script(&server, "echo there; exit 4")).await;
        assert_eq!(done, ("there\n".to_owned(), 4));
        remote.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_a_command() {
    let server = outpost().start().await;
    let folder = tempfile::tempdir().unwrap();
    let ended = folder.path().join("ended");
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", r#""$0" serve --listen stdio && : >"$1""#]);
    command.arg(crate::outpost().binary()).arg(&ended);
    command.stderr(std::process::Stdio::null());
    let remote = Remote::launch(command, RemoteOptions::default())
        .await
        .unwrap();
    let done = run(&remote, script(&server, "echo there; exit 4")).await;
    assert_eq!(done, ("there\n".to_owned(), 4));
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    // What it runs ends with it, and the test's server finds nothing of its mark.
    patience::soon("its end", remote.close()).await.unwrap();
    assert!(ended.exists(), "it was given the time to end by itself");
    let error = process.terminate().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "exec-server transport disconnected: the place was closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}/none", folder.path().display());
    for url in ["ws://127.0.0.1:1", "http://x", socket.as_str()] {
        let error = connect(url).await.err().unwrap();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(url), "{error}");
        let cause = std::error::Error::source(&error).unwrap();
        let words = format!("{:#}", anyhow::Error::from(error.clone()));
        assert_eq!(words, format!("{error}: {cause}"), "and nothing twice");
    }
    let command = std::process::Command::new("/no/such/server");
    let error = Remote::launch(command, RemoteOptions::default())
        .await
        .err()
        .unwrap();
    assert_eq!(
        format!("{:#}", anyhow::Error::from(error)),
        "cannot connect to /no/such/server: cannot launch the server: No such file or directory (os error 2)"
    );
    // Something is there, and doesn't speak TLS.
    let server = outpost().start().await;
    let url = server.urls()[0].replace("ws://", "wss://");
    let error = connect(&url).await.err().unwrap();
    let words = format!("{:#}", anyhow::Error::from(error));
    assert!(words.contains("TLS"), "{words}");
}

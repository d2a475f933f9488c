//! Tests `outpost stop`.

use outpost_testkit::programs;

use super::new_user;

#[tokio::test]
async fn stop_without_a_server_does_nothing() {
    let user = new_user();
    assert_eq!(user.stop().await, "your server is not running\n");
    assert!(user.tag().living().is_empty());
}

#[tokio::test]
async fn stop_ends_every_process() {
    let user = new_user();
    let runs = user.detach(programs::DAEMON).await;
    user.spawn(&["logs", "-f", &runs])
        .wait_for_stdout("ready")
        .await;
    let exited = user.detach("true").await;
    user.run(&["logs", "-f", &exited]).await;
    let printed = user.stop().await;
    assert!(printed.ends_with("stopped your server\n"), "{printed}");
    assert!(!printed.contains(&exited), "{printed}");
    // The server ends now, not when the test ends.
    user.tag().gone().await;
    assert!(!user.socket().exists());
    assert_eq!(user.stop().await, "your server is not running\n");
}

#[tokio::test]
async fn stop_names_the_ended_processes() {
    let user = new_user();
    let id = user.detach("exec sleep 1000").await;
    assert_eq!(
        user.stop().await,
        format!("ended {id}  sh -c 'exec sleep 1000'\nstopped your server\n")
    );
}

//! `outpost stop`: ends the user's server.

use outpost_testkit::programs;

use super::home;

#[tokio::test]
async fn without_a_server_there_is_nothing_to_end() {
    let home = home();
    assert_eq!(home.stop().await, "no server of this user is running\n");
    assert!(home.mark().living().is_empty());
}

#[tokio::test]
async fn everything_ends_with_the_server() {
    let home = home();
    let runs = home.detach(programs::DAEMON).await;
    home.watch(&["logs", "-f", &runs]).prints("ready").await;
    let ended = home.detach("true").await;
    home.run(&["logs", "-f", &ended]).await;
    let said = home.stop().await;
    assert!(
        said.ends_with("the server of this user has ended\n"),
        "{said}"
    );
    assert!(!said.contains(&ended), "{said}");
    // At once, and not only when the test ends.
    home.mark().gone().await;
    assert!(!home.socket().exists());
    assert_eq!(home.stop().await, "no server of this user is running\n");
}

#[tokio::test]
async fn what_ran_is_named() {
    let home = home();
    let id = home.detach("exec sleep 1000").await;
    assert_eq!(
        home.stop().await,
        format!("ended {id}  sh -c 'exec sleep 1000'\nthe server of this user has ended\n")
    );
}

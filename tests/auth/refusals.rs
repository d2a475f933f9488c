//! Tests what commands and the log of the server say about a refused token.

use outpost_testkit::{TestUser, deadline::poll_until};

use super::{new_token, support::Directories};
use crate::outpost;

#[tokio::test]
async fn refused_token_is_an_error_of_its_own_in_every_command() {
    let directories = Directories::new();
    let file = directories.text("tokens.toml");
    let token = new_token(&file, "ci", &["--expires", "0s"]).await;
    let server = directories.server("").start().await;
    let url = &server.urls()[0];
    let user = TestUser::new(env!("CARGO_BIN_EXE_outpost"));
    let run = async |args: &[&str], token: &str| {
        let args = [&args[..1], &["--on", url], &args[1..]].concat();
        user.command().env("OUTPOST_TOKEN", token).run(&args).await
    };
    for args in [
        &["run", "--", "true"][..],
        &["run", "--detach", "--", "true"],
        &["ps"],
        &["logs", "x"],
        &["kill", "x"],
    ] {
        let refused = run(args, &token).await;
        assert_eq!(refused.code, Some(255), "{args:?}: {refused:?}");
        let text = "the server refused the token (HTTP status 401: invalid websocket bearer token); it is wrong, \
                    expired or revoked: get a new one";
        assert!(refused.stderr.contains(text), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(url), "{args:?}: {refused:?}");
    }
    let log = poll_until("the log", || {
        let log = server.stderr();
        (log.matches("authentication failed").count() == 5).then_some(log)
    })
    .await;
    assert_eq!(log.matches("expired token").count(), 5, "{log}");
    assert!(log.contains("ci") && !log.contains(&token), "{log}");
    run(&["ps"], "unknown").await;
    poll_until("the reason", || {
        let log = server.stderr();
        log.contains("invalid websocket bearer token").then_some(())
    })
    .await;

    let list = ["token", "list", "--tokens-file", &file];
    let listed = outpost().run(&list).await.stdout;
    assert!(listed.contains("ci    expired"), "{listed}");
    new_token(&file, "ci", &["--expires", "30d"]).await;
    let listed = outpost().run(&list).await.stdout;
    assert!(listed.contains("ci    expires in 29 days"), "{listed}");
}

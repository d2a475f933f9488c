//! Where commands run, and what they find there.

use serde_json::json;

use super::Host;
use crate::outpost;

#[tokio::test]
async fn secrets_stay_where_they_are_unless_they_are_named() {
    let server = outpost()
        .env("THEIR_TOKEN", "theirs")
        .env("THEIRS", "theirs")
        .start()
        .await;
    let show = json!({"command": "echo $MY_TOKEN,$MINE,$THEIR_TOKEN,$THEIRS,$GIVEN"});
    for (args, expected) in [
        (&[][..], ",mine,,,\n"),
        (
            &["-e", "MY_TOKEN", "-e", "GIVEN=given"],
            "secret,mine,,,given\n",
        ),
        (&["--on", &server.urls()[0]], ",,,theirs,\n"),
        (
            &["--on", &server.urls()[0], "--env", "MY_TOKEN"],
            "secret,,,theirs,\n",
        ),
    ] {
        let mut host = Host::new();
        host.env = vec![("MY_TOKEN", "secret"), ("MINE", "mine")];
        let calls = [("run_command", show.clone())];
        let heard = host.calls("auto", args, &calls).await;
        assert_eq!(heard.members(0)["stdout"], expected, "{args:?}");
    }
}

#[tokio::test]
async fn relative_paths_begin_where_commands_start() {
    let host = Host::new();
    std::fs::create_dir_all(host.path("project/src")).expect("folders");
    std::fs::write(host.path("project/src/a.txt"), "here\n").expect("a file");
    let heard = host
        .calls(
            "auto",
            &["--cwd", "project"],
            &[
                ("run_command", json!({"argv": ["cat", "src/a.txt"]})),
                (
                    "run_command",
                    json!({"argv": ["cat", "a.txt"], "cwd": "src"}),
                ),
                ("read_file", json!({"path": "src/a.txt"})),
            ],
        )
        .await;
    assert_eq!(heard.members(0)["stdout"], "here\n");
    assert_eq!(heard.members(1)["stdout"], "here\n");
    assert_eq!(heard.members(2)["content"], "here\n");
}

#[tokio::test]
async fn a_server_that_is_out_of_reach_is_told_at_once() {
    for (on, told) in [
        ("ws://127.0.0.1:1", "--on ws://127.0.0.1:1: "),
        (
            "ws://127.0.0.1:1/a?token=secret",
            "--on ws://127.0.0.1:1/a: ",
        ),
        (
            "stdio:false --key secret",
            "--on a server that was launched: ",
        ),
    ] {
        let ended = outpost().run(&["mcp", "serve", "--on", on]).await;
        assert_eq!(ended.code, Some(255), "{ended:?}");
        assert!(ended.stderr.contains(told), "{ended:?}");
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
        assert_eq!(ended.stdout, "");
    }
}

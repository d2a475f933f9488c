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

#[tokio::test]
async fn commands_and_files_can_be_confined() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for place in [&[][..], &on] {
        let host = Host::new();
        std::fs::create_dir(host.path("project")).expect("a folder");
        std::fs::write(host.path("project/a.txt"), "here\n").expect("a file");
        let project = host.path("project").display().to_string();
        let calls = [
            ("read_file", json!({"path": "a.txt"})),
            ("search_files", json!({"pattern": "here"})),
            ("list_directory", json!({"depth": 2})),
            ("run_command", json!({"command": "cat a.txt; touch b.txt"})),
            ("write_file", json!({"path": "c.txt", "content": "c"})),
            (
                "edit_file",
                json!({"path": "a.txt", "old_text": "here", "new_text": "there"}),
            ),
            ("run_command", json!({"command": "mkdir .git"})),
            ("write_file", json!({"path": ".git/x", "content": "x"})),
            (
                "start_process",
                json!({"command": "mkdir .git; echo $?", "tty": true, "wait_ms": 20_000}),
            ),
        ];
        let confined = async |profile: &str| {
            let args = [place, &["--cwd", &project, "--sandbox", profile]].concat();
            host.calls("auto", &args, &calls).await
        };

        let heard = confined(":read-only").await;
        assert_eq!(heard.members(0)["content"], "here\n");
        assert_eq!(heard.members(1)["match_count"], 1);
        assert_eq!(heard.members(2)["entries"][0]["name"], "a.txt");
        assert_eq!(heard.members(3)["stdout"], "here\n");
        assert_ne!(heard.members(3)["exit_code"], 0);
        for refused in [4, 5, 7] {
            let words = heard.refusal(refused);
            assert!(words.contains("cannot"), "{words}");
        }
        let left = std::fs::read_to_string(host.path("project/a.txt"));
        assert_eq!(left.expect("it is there"), "here\n");
        assert!(!host.path("project/b.txt").exists());
        assert!(!host.path("project/c.txt").exists());

        // Here the workspace can be written, which is the directory that commands start in; of the
        // names directly below that, .git is protected.
        let heard = confined(":workspace").await;
        assert_eq!(heard.members(3)["exit_code"], 0);
        assert_eq!(heard.members(4)["created"], true);
        assert_eq!(heard.members(5)["replaced"], 1);
        assert_ne!(heard.members(6)["exit_code"], 0);
        heard.refusal(7);
        let said = heard.members(8)["output"].as_str().expect("output");
        assert!(!said.contains("0\r\n"), "{said}");
        assert!(!host.path("project/.git").exists());

        let heard = confined(":danger-full-access").await;
        assert_eq!(heard.members(6)["exit_code"], 0);
        assert_eq!(heard.members(7)["created"], true);
    }
}

#[tokio::test]
async fn what_can_not_be_confined_is_not_served() {
    let ended = outpost()
        .run(&["mcp", "serve", "--sandbox", "nobody"])
        .await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = "--sandbox nobody: there is no profile \"nobody\"; there are :";
    assert!(ended.stderr.contains(told), "{ended:?}");
    let ended = outpost()
        .env("PATH", "/nowhere")
        .run(&["mcp", "serve", "--sandbox", ":workspace"])
        .await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = "cannot confine what is to be confined: ";
    assert!(ended.stderr.contains(told), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

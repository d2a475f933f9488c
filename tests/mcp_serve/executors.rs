//! Tests the executors of `outpost mcp serve` and the environment of commands there.

use serde_json::json;

use super::Host;
use crate::outpost;

#[tokio::test]
async fn secrets_are_passed_only_by_name() {
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
        let report = host.calls("auto", args, &calls).await;
        assert_eq!(report.structured(0)["stdout"], expected, "{args:?}");
    }
}

#[tokio::test]
async fn relative_paths_start_at_the_working_directory() {
    let host = Host::new();
    std::fs::create_dir_all(host.path("project/src")).expect("directories");
    std::fs::write(host.path("project/src/a.txt"), "here\n").expect("a file");
    let report = host
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
    assert_eq!(report.structured(0)["stdout"], "here\n");
    assert_eq!(report.structured(1)["stdout"], "here\n");
    assert_eq!(report.structured(2)["content"], "here\n");
}

#[tokio::test]
async fn unreachable_server_is_reported_at_once() {
    for (on, expected) in [
        ("ws://127.0.0.1:1", "--on ws://127.0.0.1:1: "),
        (
            "ws://127.0.0.1:1/a?token=secret",
            "--on ws://127.0.0.1:1/a: ",
        ),
        ("stdio:false --key secret", "--on a launched server: "),
    ] {
        let output = outpost().run(&["mcp", "serve", "--on", on]).await;
        assert_eq!(output.code, Some(255), "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
        assert!(!output.stderr.contains("secret"), "{output:?}");
        assert_eq!(output.stdout, "");
    }
}

#[tokio::test]
async fn commands_and_files_can_be_sandboxed() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for place in [&[][..], &on] {
        let host = Host::new();
        std::fs::create_dir(host.path("project")).expect("a directory");
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
        let sandboxed = async |profile: &str| {
            let args = [place, &["--cwd", &project, "--sandbox", profile]].concat();
            host.calls("auto", &args, &calls).await
        };

        let report = sandboxed(":read-only").await;
        assert_eq!(report.structured(0)["content"], "here\n");
        assert_eq!(report.structured(1)["match_count"], 1);
        assert_eq!(report.structured(2)["entries"][0]["name"], "a.txt");
        assert_eq!(report.structured(3)["stdout"], "here\n");
        assert_ne!(report.structured(3)["exit_code"], 0);
        for rejected in [4, 5, 7] {
            let message = report.error_text(rejected);
            assert!(message.contains("cannot"), "{message}");
        }
        let left = std::fs::read_to_string(host.path("project/a.txt"));
        assert_eq!(left.expect("it exists"), "here\n");
        assert!(!host.path("project/b.txt").exists());
        assert!(!host.path("project/c.txt").exists());

        // Here the workspace, which is the commands' working directory, is writable. Directly below
        // it, .git is protected.
        let report = sandboxed(":workspace").await;
        assert_eq!(report.structured(3)["exit_code"], 0);
        assert_eq!(report.structured(4)["created"], true);
        assert_eq!(report.structured(5)["replaced"], 1);
        assert_ne!(report.structured(6)["exit_code"], 0);
        report.error_text(7);
        let printed = report.structured(8)["output"].as_str().expect("output");
        assert!(!printed.contains("0\r\n"), "{printed}");
        assert!(!host.path("project/.git").exists());

        let report = sandboxed(":danger-full-access").await;
        assert_eq!(report.structured(6)["exit_code"], 0);
        assert_eq!(report.structured(7)["created"], true);
    }
}

#[tokio::test]
async fn unenforceable_profile_is_not_served() {
    let output = outpost()
        .run(&["mcp", "serve", "--sandbox", "unknown"])
        .await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let expected = "--sandbox unknown: there is no profile \"unknown\"; there are :";
    assert!(output.stderr.contains(expected), "{output:?}");
    let output = outpost()
        .env("PATH", "/nowhere")
        .run(&["mcp", "serve", "--sandbox", ":workspace"])
        .await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let expected = "cannot enforce the sandbox: ";
    assert!(output.stderr.contains(expected), "{output:?}");
    assert_eq!(output.stdout, "");
}

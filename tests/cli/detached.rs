//! Tests `outpost run --detach` on the user's server.

use super::{command, finish, new_user, text};

#[tokio::test]
async fn process_outlives_the_command() {
    let user = new_user();
    let go = user.dir().join("go");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done",
        go.display()
    );
    let id = user.detach(&script).await;
    assert_eq!(id.len(), 8, "{id}");
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    assert!(id.chars().all(fine), "{id}");
    std::fs::write(&go, "").unwrap();
    assert_eq!(user.output(&["logs", "-f", &id]).await, "begun\ndone\n");
    user.stop().await;
}

#[tokio::test]
async fn process_has_the_callers_environment_and_directory() {
    let user = new_user();
    let launch = user.command().env("GREETING", "hello there");
    let script = "echo $GREETING; pwd";
    let started = launch
        .run(&["run", "--detach", "--", "sh", "-c", script])
        .await;
    let cwd = std::env::current_dir().unwrap();
    let logs = user
        .output(&["logs", "-f", started.stdout.trim_end()])
        .await;
    assert_eq!(logs, format!("hello there\n{}\n", cwd.display()));
    user.stop().await;
}

#[tokio::test]
async fn failed_start_leaves_nothing() {
    let user = new_user();
    let failed = user.run(&["run", "--detach", "--", "/nope/nope"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(127), ""));
    assert_eq!(
        failed.stderr,
        "outpost: cannot execute \"/nope/nope\": No such file or directory (os error 2)\n"
    );
    assert_eq!(user.output(&["ps", "--all", "--json"]).await, "[]\n");
    user.stop().await;
}

#[tokio::test]
async fn each_run_has_its_own_session() {
    let user = new_user();
    let one = user.detach("echo one; exec sleep 1000").await;
    let two = user.detach("echo two; exec sleep 1000").await;
    assert_ne!(one, two);
    user.output(&["kill", &one]).await;
    let ps = user.output(&["ps"]).await;
    assert!(ps.contains(&format!("{two}  running")), "{ps}");
    let stopped = user.stop().await;
    assert!(stopped.contains(&format!("ended {two}")), "{stopped}");
    assert!(!stopped.contains(&one), "{stopped}");
}

#[tokio::test]
async fn id_that_cannot_be_printed_is_in_the_error() {
    let user = new_user();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = command(&["run", "-d", "sleep", "1000"], user.tag())
        .env("XDG_RUNTIME_DIR", user.dir())
        .stdout(writer)
        .spawn()
        .unwrap();
    let started = finish(child).await;
    assert_eq!(started.status.code(), Some(1), "{started:?}");
    let message = text(&started.stderr);
    let message = message.strip_prefix("outpost: cannot print the id ");
    let (id, error) = message.and_then(|rest| rest.split_once(": ")).unwrap();
    assert_eq!(error, "Broken pipe (os error 32)\n");
    let stopped = user.stop().await;
    assert!(stopped.contains(&format!("ended {id}")), "{stopped}");
}

#[tokio::test]
async fn ignored_input_is_reported() {
    let user = new_user();
    for (input, printed) in [("hello", true), ("", false)] {
        let path = user.dir().join("input");
        std::fs::write(&path, input).unwrap();
        let child = command(&["run", "-d", "true"], user.tag())
            .env("XDG_RUNTIME_DIR", user.dir())
            .stdin(std::fs::File::open(&path).unwrap())
            .spawn()
            .unwrap();
        let started = finish(child).await;
        assert_eq!(started.status.code(), Some(0), "{started:?}");
        let message = text(&started.stderr);
        assert_eq!(message.contains("not forwarded"), printed, "{message}");
    }
    user.stop().await;
}

//! `outpost run --detach`: work that goes on alone.

use super::{command, ended, home, text};

#[tokio::test]
async fn it_goes_on_when_the_command_has_returned() {
    let home = home();
    let go = home.folder().join("go");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done",
        go.display()
    );
    let id = home.detach(&script).await;
    assert_eq!(id.len(), 8, "{id}");
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    assert!(id.chars().all(fine), "{id}");
    std::fs::write(&go, "").unwrap();
    assert_eq!(home.output(&["logs", "-f", &id]).await, "begun\ndone\n");
    home.stop().await;
}

#[tokio::test]
async fn it_runs_where_and_as_it_was_called() {
    let home = home();
    let launch = home.launch().env("GREETING", "hello there");
    let script = "echo $GREETING; pwd";
    let started = launch
        .run(&["run", "--detach", "--", "sh", "-c", script])
        .await;
    let here = std::env::current_dir().unwrap();
    let logs = home
        .output(&["logs", "-f", started.stdout.trim_end()])
        .await;
    assert_eq!(logs, format!("hello there\n{}\n", here.display()));
    home.stop().await;
}

#[tokio::test]
async fn what_can_not_be_started_leaves_nothing() {
    let home = home();
    let failed = home.run(&["run", "--detach", "--", "/nope/nope"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(127), ""));
    assert_eq!(
        failed.stderr,
        "outpost: cannot execute \"/nope/nope\": No such file or directory (os error 2)\n"
    );
    assert_eq!(home.output(&["ps", "--all", "--json"]).await, "[]\n");
    home.stop().await;
}

#[tokio::test]
async fn each_is_on_its_own() {
    let home = home();
    let one = home.detach("echo one; exec sleep 1000").await;
    let two = home.detach("echo two; exec sleep 1000").await;
    assert_ne!(one, two);
    home.output(&["kill", &one]).await;
    let ps = home.output(&["ps"]).await;
    assert!(ps.contains(&format!("{two}  running")), "{ps}");
    let stopped = home.stop().await;
    assert!(stopped.contains(&format!("ended {two}")), "{stopped}");
    assert!(!stopped.contains(&one), "{stopped}");
}

#[tokio::test]
async fn input_that_is_not_passed_on_is_mentioned() {
    let home = home();
    for (input, said) in [("hello", true), ("", false)] {
        let path = home.folder().join("input");
        std::fs::write(&path, input).unwrap();
        let child = command(&["run", "-d", "true"], home.mark())
            .env("XDG_RUNTIME_DIR", home.folder())
            .stdin(std::fs::File::open(&path).unwrap())
            .spawn()
            .unwrap();
        let started = ended(child).await;
        assert_eq!(started.status.code(), Some(0), "{started:?}");
        let words = text(&started.stderr);
        assert_eq!(words.contains("isn't passed on"), said, "{words}");
    }
    home.stop().await;
}

//! `outpost run --detach`: work that goes on alone.

use super::home;

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
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(
        failed
            .stderr
            .starts_with("outpost: cannot start the command: "),
        "{failed:?}"
    );
    assert!(
        failed.stderr.contains("No such file or directory"),
        "{failed:?}"
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

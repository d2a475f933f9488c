//! `outpost config show` and `outpost config path`.

use outpost_testkit::Start;
use serde_json::{Value, json};

use super::{User, text};
use crate::ready;

const FILE: &str = "retain_bytes = \"64KiB\"

[shell_environment_policy]
set = { PASSWORD = \"hush\" }
";

#[tokio::test]
async fn people_see_what_is_in_force_and_where_to_change_it() {
    let user = User::with_file(FILE);
    let launch = user.outpost().env("OUTPOST_MAX_SESSIONS", "12");
    let shown = launch.run(&["config", "show", "--origins"]).await;
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    let file = user.file();
    let file = text(&file);
    for (key, value, origin) in [
        ("listen", "[\"ws://127.0.0.1:0\"]", "default".to_owned()),
        ("retain_bytes", "\"64KiB\"", format!("{file}:1")),
        ("max_sessions", "12", "OUTPOST_MAX_SESSIONS".to_owned()),
        (
            "shell_environment_policy.set",
            "{ PASSWORD = \"********\" }",
            format!("{file}:4"),
        ),
    ] {
        let line = shown
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")));
        let line = line.unwrap_or_else(|| panic!("no {key} in {}", shown.stdout));
        let (said, from) = line.split_once("  # ").expect("an origin");
        let (_, said) = said.split_once(" = ").expect("a value");
        assert_eq!((said.trim_end(), from), (value, origin.as_str()));
    }
    assert!(!shown.stdout.contains("hush"), "{}", shown.stdout);
    assert!(!shown.stdout.contains('\x1b'), "colours are for terminals");
}

#[tokio::test]
async fn on_a_terminal_there_are_colours_unless_somebody_wants_none() {
    let (server, client) = ready().await;
    let program = std::fs::read_link(format!("/proc/{}/exe", server.pid())).expect("a program");
    let argv = [text(&program), "config", "show"];
    for (id, env, coloured) in [
        ("colours", &[("TERM", "xterm")][..], true),
        ("none", &[("TERM", "xterm"), ("NO_COLOR", "1")], false),
    ] {
        let start = Start::new(id, &argv).env(env).with("tty", true);
        let shown = client.run(start).await.text();
        assert!(shown.contains("retain_bytes"), "{shown}");
        assert_eq!(shown.contains('\x1b'), coloured, "{id}: {shown}");
    }
}

#[tokio::test]
async fn what_is_shown_can_be_put_into_a_file() {
    let shown = User::new().outpost().run(&["config", "show"]).await;
    let again = User::with_file(&shown.stdout);
    let again = again.outpost().run(&["config", "show"]).await;
    assert_eq!(again.stdout, shown.stdout);
    assert_eq!(again.stderr, "");
}

#[tokio::test]
async fn programs_get_json() {
    let user = User::with_file(FILE);
    let shown = user.outpost().run(&["config", "show", "--json"]).await;
    let plain: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(plain["config"]["retain_bytes"], "64KiB");
    assert_eq!(
        plain["config"]["log"],
        json!({"level": "info", "format": "text"})
    );
    assert_eq!(plain.get("origins"), None);
    let shown = user
        .outpost()
        .run(&["config", "show", "--json", "--origins"])
        .await;
    let with_origins: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(with_origins["config"], plain["config"]);
    assert_eq!(
        with_origins["origins"]["retain_bytes"]["name"],
        json!({"type": "user", "file": text(&user.file())})
    );
    assert!(!shown.stdout.contains("hush"), "{}", shown.stdout);
}

#[tokio::test]
async fn the_files_can_be_found() {
    let user = User::new();
    let file = user.file();
    let paths = user.outpost().run(&["config", "path"]).await;
    let lines: Vec<_> = paths.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", paths.stdout);
    assert_eq!(lines[0], format!("user    {}  (absent)", text(&file)));
    assert!(lines[1].starts_with("system  /etc/outpost/outpost.toml"));
    // One that is there and can't be read is not absent.
    std::fs::create_dir_all(&file).expect("a folder where a file should be");
    let paths = user.outpost().run(&["config", "path"]).await;
    let first = paths.stdout.lines().next();
    let unreadable = format!(
        "user    {}  (unreadable: Is a directory (os error 21))",
        text(&file)
    );
    assert_eq!(first, Some(unreadable.as_str()));
    let only = user.outpost().run(&["config", "path", "--user"]).await;
    assert_eq!(only.stdout, format!("{}\n", text(&file)));
}

#[tokio::test]
async fn a_number_is_a_time_in_seconds_wherever_it_is_written() {
    let user = User::with_file("session_ttl = 30\nmax_session_ttl = 3600");
    let launch = user.outpost().env("OUTPOST_CLOSED_RETENTION", "5");
    let shown = launch.run(&["config", "show"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for (key, value) in [
        ("session_ttl", "\"30s\""),
        ("max_session_ttl", "\"1h\""),
        ("closed_retention", "\"5s\""),
    ] {
        let line = shown.stdout.lines().find(|line| line.starts_with(key));
        let line = line.unwrap_or_else(|| panic!("no {key}: {}", shown.stdout));
        assert!(line.contains(value), "{line}");
    }
}

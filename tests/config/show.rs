//! Tests `outpost config show` and `outpost config path`.

use outpost_testkit::Start;
use serde_json::{Value, json};

use super::{User, text};
use crate::ready;

const FILE: &str = "retain_bytes = \"64KiB\"

[shell_environment_policy]
set = { PASSWORD = \"hush\" }
";

#[tokio::test]
async fn default_memory_budget_is_a_part_of_the_memory_limit() {
    let user = User::with_file("");
    for (limit, budget) in [("262144", "64MiB"), ("unlimited", "192MiB")] {
        let limited = user.outpost().after_shell(&format!("ulimit -v {limit}"));
        let output = limited.run(&["config", "show"]).await;
        let line = output
            .stdout
            .lines()
            .find(|line| line.starts_with("memory_budget "));
        let line = line.unwrap_or_else(|| panic!("{output:?}"));
        assert!(line.ends_with(&format!("= \"{budget}\"")), "{line}");
    }
}

#[tokio::test]
async fn effective_values_are_shown_with_their_origin() {
    let user = User::with_file(FILE);
    let launch = user.outpost().env("OUTPOST_MAX_SESSIONS", "12");
    let output = launch.run(&["config", "show", "--origins"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
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
        let line = output
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")));
        let line = line.unwrap_or_else(|| panic!("no {key} in {}", output.stdout));
        let (printed, from) = line.split_once("  # ").expect("an origin");
        let (_, printed) = printed.split_once(" = ").expect("a value");
        assert_eq!((printed.trim_end(), from), (value, origin.as_str()));
    }
    assert!(!output.stdout.contains("hush"), "{}", output.stdout);
    assert!(!output.stdout.contains('\x1b'), "colours are for terminals");
}

#[tokio::test]
async fn terminal_output_is_coloured_unless_no_color() {
    let (_server, client) = ready().await;
    let program = crate::outpost();
    let argv = [text(program.binary()), "config", "show"];
    for (id, env, coloured) in [
        ("colours", &[("TERM", "xterm")][..], true),
        ("none", &[("TERM", "xterm"), ("NO_COLOR", "1")], false),
    ] {
        let start = Start::new(id, &argv).env(env).with("tty", true);
        let output = client.run(start).await.text();
        assert!(output.contains("retain_bytes"), "{output}");
        assert_eq!(output.contains('\x1b'), coloured, "{id}: {output}");
    }
}

#[tokio::test]
async fn shown_configuration_is_valid_toml() {
    let output = User::new().outpost().run(&["config", "show"]).await;
    let again = User::with_file(&output.stdout);
    let again = again.outpost().run(&["config", "show"]).await;
    assert_eq!(again.stdout, output.stdout);
    assert_eq!(again.stderr, "");
}

#[tokio::test]
async fn json_output_is_available() {
    let user = User::with_file(FILE);
    let output = user.outpost().run(&["config", "show", "--json"]).await;
    let plain: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(plain["config"]["retain_bytes"], "64KiB");
    assert_eq!(
        plain["config"]["log"],
        json!({"level": "info", "format": "text"})
    );
    assert_eq!(plain.get("origins"), None);
    let output = user
        .outpost()
        .run(&["config", "show", "--json", "--origins"])
        .await;
    let with_origins: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(with_origins["config"], plain["config"]);
    assert_eq!(
        with_origins["origins"]["retain_bytes"]["name"],
        json!({"type": "user", "file": text(&user.file())})
    );
    assert!(!output.stdout.contains("hush"), "{}", output.stdout);
}

#[tokio::test]
async fn paths_of_the_files_are_printed() {
    let user = User::new();
    let file = user.file();
    let paths = user.outpost().run(&["config", "path"]).await;
    let lines: Vec<_> = paths.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", paths.stdout);
    assert_eq!(lines[0], format!("user    {}  (absent)", text(&file)));
    assert!(lines[1].starts_with("system  /etc/outpost/outpost.toml"));
    // An unreadable file is not reported as absent.
    std::fs::create_dir_all(&file).expect("a directory in place of the file");
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
async fn bare_number_is_a_time_in_seconds() {
    let user = User::with_file("session_ttl = 30\nmax_session_ttl = 3600");
    let launch = user.outpost().env("OUTPOST_CLOSED_RETENTION", "5");
    let output = launch.run(&["config", "show"]).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    for (key, value) in [
        ("session_ttl", "\"30s\""),
        ("max_session_ttl", "\"1h\""),
        ("closed_retention", "\"5s\""),
    ] {
        let line = output.stdout.lines().find(|line| line.starts_with(key));
        let line = line.unwrap_or_else(|| panic!("no {key}: {}", output.stdout));
        assert!(line.contains(value), "{line}");
    }
}

//! Captures that fail.

use std::time::{Duration, Instant};

use outpost_engine::{InvalidStart, Limits, ServerEnvironment, Start, netproxy::NetworkPolicies};
use outpost_types::StartParams;

use super::{Fixture, Home, assert_plain, content};
use crate::owner::{is_alive, until};

#[tokio::test(flavor = "multi_thread")]
async fn profile_that_exits_ends_the_command_too() {
    let home = Home::new("echo noise; exit 3");
    let fixture = Fixture::new();
    for runs in [2, 3] {
        let outcome = fixture.run(home.bash("echo command")).await;
        assert_eq!(outcome, ("noise\n".to_owned(), 3));
        assert_eq!(home.runs(), runs, "the failure is remembered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_profile_is_killed_and_the_command_runs_plain() {
    let home = Home::new(
        "[ -e ~/once ] || { echo >~/once; sleep 1000 & echo $! >~/pid; wait; }; echo noise",
    );
    let fixture = Fixture::with_limits(Limits {
        shell_snapshot_timeout: Duration::from_secs(2),
        ..Limits::default()
    });
    let began = Instant::now();
    let outcome = fixture.run(home.bash("echo command")).await;
    assert_plain(&outcome, "command");
    assert!(began.elapsed() >= Duration::from_secs(2));
    let pid = content(home.path().join("pid")).await;
    let pid = pid.parse().expect("a pid");
    until("its processes are killed", || !is_alive(pid)).await;
    assert_plain(&fixture.run(home.bash("echo again")).await, "again");
    assert_eq!(home.runs(), 3, "the failure is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_state_is_not_kept() {
    // A function of this many bytes.
    let profile = |bytes: usize| {
        format!("echo noise; eval \"f() {{ : $(head -c {bytes} /dev/zero | tr '\\0' x); }}\"")
    };
    let fixture = Fixture::new();
    let home = Home::new(&profile(4 * 1024 * 1024 - 20_000));
    assert_eq!(fixture.output(home.bash("echo command")).await, "command\n");
    let home = Home::new(&profile(4 * 1024 * 1024));
    for runs in [2, 3] {
        let outcome = fixture.run(home.bash("echo command")).await;
        assert_plain(&outcome, "command");
        assert_eq!(home.runs(), runs, "the failure is remembered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_without_memory_is_not_kept() {
    let home = Home::new("echo noise; eval \"f() { : $(head -c 20000 /dev/zero | tr '\\0' x); }\"");
    let fixture = Fixture::with_limits(Limits {
        kept_output_bytes: 100_000,
        ..Limits::default()
    });
    assert_plain(&fixture.run(home.bash("echo command")).await, "command");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_profile_does_not_forge_the_state() {
    let home = Home::new(
        r#"
        echo noise
        tr '\0' '\n' </proc/$$/cmdline
        alias printf='echo alias' builtin='echo alias' set='echo alias'
        printf() { echo function; }; set() { echo function; }; shopt() { echo function; }
        declare() { echo function; }; test() { return 1; }
        env() { echo function; }; PATH=/nonexistent
        shopt -s expand_aliases; IFS=abc
        builtin set -eux -o noglob
        "#,
    );
    let fixture = Fixture::new();
    let mut params = home.bash("printf; builtin echo $-");
    params.env.insert("PATH".into(), "/usr/bin:/bin".into());
    let (output, code) = fixture.run(params).await;
    assert_eq!(code, 0, "{output}");
    let lines: Vec<_> = output
        .lines()
        .filter(|line| !line.starts_with('+'))
        .collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert_eq!(lines[0], "function", "{output}");
    assert!(lines[1].contains('f') && lines[1].contains('x') && !lines[1].contains('e'));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_too_long_to_be_restored_runs_plain() {
    let home = Home::new("echo noise");
    let fixture = Fixture::new();
    let longest = 128 * 1024 - 1;
    let command = format!("echo command #{}", "x".repeat(longest - 14));
    assert_eq!(command.len(), longest);
    assert_plain(&fixture.run(home.bash(&command)).await, "command");
    let shorter = &command[..longest - 100];
    assert_eq!(fixture.output(home.bash(shorter)).await, "command\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_shell_is_the_error_of_the_start() {
    let home = Home::new("");
    let fixture = Fixture::new();
    let params = home.shell("zsh", "/nonexistent/zsh", "true");
    let error = fixture.start(params).await.err().expect("it cannot start");
    assert_eq!(
        error.to_string(),
        "cannot execute \"/nonexistent/zsh\": No such file or directory (os error 2)"
    );
}

#[test]
fn invalid_snapshots_are_rejected() {
    let home = Home::new("");
    let error = |change: &dyn Fn(&mut StartParams)| {
        let mut params = home.bash("true");
        change(&mut params);
        let started = Start::from_params(
            params,
            &ServerEnvironment::default(),
            &NetworkPolicies::default(),
        );
        started.err().map(|error: InvalidStart| error.to_string())
    };
    fn scope(params: &mut StartParams) -> &mut String {
        &mut params.shell_snapshot.as_mut().unwrap().scope_id
    }
    let too_long = "shell snapshot scope must be non-empty and at most 256 bytes";
    assert_eq!(
        error(&|params| scope(params).clear()).as_deref(),
        Some(too_long)
    );
    let long = |length| error(&move |params| *scope(params) = "ä".repeat(length));
    assert_eq!(long(129).as_deref(), Some(too_long));
    assert_eq!(long(128), None);
    let unsupported = error(&|params| {
        // Even if it would not apply.
        params.argv[1] = "-c".to_owned();
        params.shell_snapshot.as_mut().unwrap().shell.name = "fish".to_owned();
    });
    assert_eq!(
        unsupported.as_deref(),
        Some("shell snapshots are unsupported for shell `fish`")
    );
    assert_eq!(error(&|params| params.shell_snapshot = None), None);
}

//! Tests that an invalid configuration yields one line and exit code 1 before anything listens.

use super::{User, text};
use crate::outpost;

#[tokio::test]
async fn broken_file_is_reported_with_line_and_key() {
    for (file, message) in [
        (
            "\nretain_byte = 1",
            ":2: unknown key retain_byte; did you mean retain_bytes?",
        ),
        (
            "retain_bytes = \"lots\"",
            ":1: invalid value for retain_bytes = \"lots\": expected a size",
        ),
        ("[log]\nlevel = 3", ":2: invalid value for log.level = 3: "),
        (
            "max_sessions = 99999999999999999999",
            ":1: invalid value for max_sessions = 99999999999999999999: expected a whole number",
        ),
        (
            "log.level = 2026-11-16",
            ":1: invalid value for log.level = 2026-11-16: ",
        ),
        ("listen = [", ":1: "),
        (
            "shell_environment_policy.set = { \"A=B\" = \"x\" }",
            ":1: invalid value for shell_environment_policy.set = ",
        ),
    ] {
        let user = User::with_file(file);
        for args in [&["serve"][..], &["config", "show"]] {
            let output = user.outpost().run(args).await;
            assert_eq!(
                (output.code, output.stdout.as_str()),
                (Some(1), ""),
                "{file}"
            );
            let start = format!("outpost: {}{message}", text(&user.file()));
            assert!(output.stderr.starts_with(&start), "{}", output.stderr);
            assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        }
    }
}

#[tokio::test]
async fn unreadable_file_is_named() {
    let user = User::new();
    let file = user.file();
    std::fs::create_dir_all(&file).expect("a directory in place of the file");
    let output = user.outpost().run(&["serve"]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let start = format!("outpost: cannot read {}: ", text(&file));
    assert!(output.stderr.starts_with(&start), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

#[tokio::test]
async fn dangling_link_is_not_a_missing_file() {
    let user = User::new();
    let file = user.file();
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("created");
    std::os::unix::fs::symlink("/no/such/file", &file).expect("a link");
    let output = user.outpost().run(&["serve"]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let start = format!("outpost: cannot read {}: ", text(&file));
    assert!(output.stderr.starts_with(&start), "{}", output.stderr);
}

#[tokio::test]
async fn endless_file_is_rejected() {
    let output = outpost().run(&["serve", "--config", "/dev/zero"]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("/dev/zero"), "{}", output.stderr);
}

#[tokio::test]
async fn pipe_is_rejected_without_waiting() {
    let user = User::new();
    let pipe = user.file();
    std::fs::create_dir_all(pipe.parent().expect("a directory")).expect("created");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let rejected = format!(
        "cannot read {}: it is a pipe, a socket or a device\n",
        text(&pipe)
    );
    for args in [&["serve"][..], &["config", "show"]] {
        let output = user.outpost().run(args).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert_eq!(output.stderr, format!("outpost: {rejected}"));
    }
    // /dev/null is the usual way to pass no file.
    let shown = outpost()
        .run(&["config", "show", "--config", "/dev/null"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
}

#[tokio::test]
async fn named_file_must_exist() {
    let user = User::new();
    let absent = user.file();
    let flag = user
        .outpost()
        .run(&["serve", "--config", text(&absent)])
        .await;
    let variable = user
        .outpost()
        .env("OUTPOST_CONFIG", text(&absent))
        .run(&["serve"])
        .await;
    for output in [flag, variable] {
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(text(&absent)), "{}", output.stderr);
    }
}

#[tokio::test]
async fn similar_or_invalid_variable_is_named() {
    for (name, value, message) in [
        (
            "OUTPOST_LOGLEVEL",
            "warn",
            "unknown variable OUTPOST_LOGLEVEL in the environment; did you mean OUTPOST_LOG_LEVEL?",
        ),
        (
            "OUTPOST_MAX_SESSIONS",
            "none",
            "invalid value for OUTPOST_MAX_SESSIONS=\"none\" of the environment: expected a whole number \
             greater than 0",
        ),
    ] {
        let output = outpost().env(name, value).run(&["serve"]).await;
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{name}"
        );
        assert_eq!(output.stderr, format!("outpost: {message}\n"));
    }
}

#[tokio::test]
async fn invalid_profiles_are_named() {
    for (file, message) in [
        (
            "[sandbox]\ndefault_profile = \"x\"",
            "invalid value for sandbox.default_profile = \"x\": there is no such profile",
        ),
        (
            "[sandbox.profiles.x.files]\n\":home\" = \"read\"",
            "expected an absolute path, a pattern, or one of :root",
        ),
        (
            "[sandbox.profiles.x]\nfiles = \"unrestricted\"\nnetwork = \"packages\"",
            "invalid value for sandbox.profiles.x.network: there is no network policy \"packages\"",
        ),
        (
            "[principals.ci]\nnetwork = \"packages\"",
            "invalid value for principals.ci.network: there is no network policy \"packages\"",
        ),
        (
            "[network_policies.packages]\ninclude = [\"none\"]",
            "invalid value for network_policies.packages.include: there is no network policy \"none\"",
        ),
        (
            "[network_policies.packages]\nallow = [\"a b\"]",
            "packages: invalid network policy: unsupported domain pattern syntax: a b",
        ),
        (
            "[sandbox]\nlevel = \"none\"",
            "expected one of namespaces, landlock",
        ),
    ] {
        let output = User::with_file(file).outpost().run(&["serve"]).await;
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{file}"
        );
        assert!(output.stderr.contains(message), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

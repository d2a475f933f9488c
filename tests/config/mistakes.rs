//! A configuration that makes no sense is one line and exit code 1, before anything listens.

use super::{User, text};
use crate::outpost;

#[tokio::test]
async fn a_broken_file_is_named_with_line_and_key() {
    for (file, words) in [
        (
            "\nretain_byte = 1",
            ":2: unknown key retain_byte; did you mean retain_bytes?",
        ),
        (
            "retain_bytes = \"lots\"",
            ":1: cannot use retain_bytes = \"lots\": expected a size",
        ),
        ("[log]\nlevel = 3", ":2: cannot use log.level = 3: "),
        (
            "max_sessions = 99999999999999999999",
            ":1: cannot use max_sessions = 99999999999999999999: expected a whole number",
        ),
        (
            "log.level = 2026-11-16",
            ":1: cannot use log.level = 2026-11-16: ",
        ),
        ("listen = [", ":1: "),
        (
            "shell_environment_policy.set = { \"A=B\" = \"x\" }",
            ":1: cannot use shell_environment_policy.set = ",
        ),
    ] {
        let user = User::with_file(file);
        for args in [&["serve"][..], &["config", "show"]] {
            let ended = user.outpost().run(args).await;
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{file}");
            let start = format!("outpost: {}{words}", text(&user.file()));
            assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named() {
    let user = User::new();
    let file = user.file();
    std::fs::create_dir_all(&file).expect("a folder where a file should be");
    let ended = user.outpost().run(&["serve"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let start = format!("outpost: cannot read {}: ", text(&file));
    assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[tokio::test]
async fn a_link_to_nowhere_is_not_the_same_as_no_file() {
    let user = User::new();
    let file = user.file();
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
    std::os::unix::fs::symlink("/no/such/file", &file).expect("a link");
    let ended = user.outpost().run(&["serve"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let start = format!("outpost: cannot read {}: ", text(&file));
    assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
}

#[tokio::test]
async fn a_file_without_an_end_is_refused() {
    let ended = outpost().run(&["serve", "--config", "/dev/zero"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/dev/zero"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_pipe_is_refused_and_not_waited_for() {
    let user = User::new();
    let pipe = user.file();
    std::fs::create_dir_all(pipe.parent().expect("a folder")).expect("it can be made");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let refused = format!(
        "cannot read {}: it is a pipe, a socket or a device\n",
        text(&pipe)
    );
    for args in [&["serve"][..], &["config", "show"]] {
        let ended = user.outpost().run(args).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr, format!("outpost: {refused}"));
    }
    // The usual word for no file at all.
    let shown = outpost()
        .run(&["config", "show", "--config", "/dev/null"])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
}

#[tokio::test]
async fn a_file_that_was_named_has_to_exist() {
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
    for ended in [flag, variable] {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(text(&absent)), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_variable_that_is_nearly_right_or_wrong_is_named() {
    for (name, value, words) in [
        (
            "OUTPOST_LOGLEVEL",
            "warn",
            "unknown variable OUTPOST_LOGLEVEL in the environment; did you mean OUTPOST_LOG_LEVEL?",
        ),
        (
            "OUTPOST_MAX_SESSIONS",
            "none",
            "cannot use OUTPOST_MAX_SESSIONS=\"none\" of the environment: expected a whole number \
             greater than 0",
        ),
    ] {
        let ended = outpost().env(name, value).run(&["serve"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{name}");
        assert_eq!(ended.stderr, format!("outpost: {words}\n"));
    }
}

#[tokio::test]
async fn profiles_that_make_no_sense_are_named() {
    for (file, words) in [
        (
            "[sandbox]\ndefault_profile = \"x\"",
            "cannot use sandbox.default_profile = \"x\": there is no such profile",
        ),
        (
            "[sandbox.profiles.x.files]\n\":home\" = \"read\"",
            "expected an absolute path, a pattern, or one of :root",
        ),
        (
            "[sandbox]\nlevel = \"none\"",
            "expected one of namespaces, landlock",
        ),
    ] {
        let ended = User::with_file(file).outpost().run(&["serve"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{file}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

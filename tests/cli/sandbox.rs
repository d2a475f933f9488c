//! Tests `outpost sandbox` and `outpost doctor`.

use std::{fs, path::Path};

use outpost_testkit::TestTag;
use serde_json::Value;

use super::{command, finish, outcome, text};

/// Runs the program on a host without bubblewrap.
pub(super) async fn without_bubblewrap(args: &[&str]) -> std::process::Output {
    with_path(args, Path::new("/nowhere")).await
}

async fn with_path(args: &[&str], path: &Path) -> std::process::Output {
    let tag = TestTag::new();
    let child = command(args, &tag).env("PATH", path).spawn();
    let output = finish(child.expect("spawn")).await;
    tag.gone().await;
    output
}

/// Builds the arguments of a script that is sandboxed to a directory.
pub(super) fn script<'a>(dir: &'a str, flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["sandbox", "--cwd", dir];
    args.extend(flags);
    args.extend(["--", "/bin/sh", "-c", script]);
    args
}

#[tokio::test]
async fn streams_and_exit_code_are_the_commands() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().to_str().expect("text");
    let output = outcome(
        &script(dir, &[], "cat; echo err >&2; pwd; exit 7"),
        b"typed\n",
    )
    .await;
    assert_eq!(text(&output.stdout), format!("typed\n{dir}\n"));
    assert_eq!(text(&output.stderr), "err\n");
    assert_eq!(output.status.code(), Some(7));
    for (command, code) in [
        (&["/no/such/program"][..], 127),
        (&["/etc/passwd"], 126),
        (&["sh", "-c", "kill -TERM $$"], 143),
    ] {
        let args: Vec<_> = ["sandbox", "--"].iter().chain(command).copied().collect();
        let output = outcome(&args, b"").await;
        assert_eq!(output.status.code(), Some(code), "{command:?}");
    }
}

#[tokio::test]
async fn granted_access_works_and_other_access_fails() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["ws", "more"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    fs::write(dir.path().join("ws/key.pem"), "secret").expect("a file");
    fs::write(dir.path().join("ws/notes"), "private").expect("a file");
    let ws = dir.path().join("ws");
    let ws = ws.to_str().expect("text");
    let read_only = ["--profile", ":read-only"];
    let with = |more: &[&'static str]| [&read_only[..], more].concat();
    for (flags, line, works) in [
        (vec![], "echo x > made", true),
        (vec![], "mkdir .git", false),
        (with(&[]), "echo x > other", false),
        (with(&["--write", "."]), "echo x > other", true),
        (with(&["--write", "../more"]), "echo x > ../more/a", true),
        (with(&["--write", "../more"]), "echo x > b", false),
        (vec![], "cat key.pem notes", true),
        (vec!["--deny", "**/*.pem"], "cat key.pem", false),
        (vec!["--deny", "notes"], "cat notes", false),
        (vec!["--deny", "absent"], "echo x > absent", false),
    ] {
        let output = outcome(&script(ws, &flags, line), b"").await;
        let printed = text(&output.stderr);
        assert_eq!(
            output.status.success(),
            works,
            "{flags:?} {line}: {printed}"
        );
    }
    let left: Vec<_> = [".git", ".codex", ".agents", ".aws", "absent", "b"]
        .into_iter()
        .filter(|name| Path::new(ws).join(name).exists())
        .collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn name_with_brackets_is_denied_literally() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["x[1]", "{a,b}", "to"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
        fs::write(dir.path().join(name).join("s.pem"), "secret").expect("a file");
    }
    std::os::unix::fs::symlink("to", dir.path().join("l[1]")).expect("a link");
    let path = dir.path().to_str().expect("text");
    for (deny, name) in [
        ("x[1]", "x[1]"),
        ("{a,b}", "{a,b}"),
        ("x[1]/*.pem", "x[1]"),
        ("x?1]", "x[1]"),
        ("{a,b}/*", "{a,b}"),
        ("l[1]/*.pem", "to"),
    ] {
        let line = format!("cat '{name}/s.pem'");
        let flags = ["--profile", ":read-only"];
        let output = outcome(&script(path, &flags, &line), b"").await;
        assert_eq!(text(&output.stdout), "secret", "{line}");
        let output = outcome(
            &script(path, &[&flags[..], &["--deny", deny]].concat(), &line),
            b"",
        )
        .await;
        assert_eq!(text(&output.stdout), "", "{deny}");
        assert_eq!(output.status.code(), Some(1), "{deny}: {output:?}");
    }
}

#[tokio::test]
async fn host_network_needs_a_grant() {
    let outside = fs::read_link("/proc/self/ns/net").expect("a namespace");
    for (flags, same) in [(&[][..], false), (&["--net"], true)] {
        let line = "readlink /proc/self/ns/net";
        let output = outcome(&script("/", flags, line), b"").await;
        let inside = text(&output.stdout).trim();
        assert_eq!(inside == outside.to_str().expect("text"), same, "{flags:?}");
    }
}

#[tokio::test]
async fn unenforceable_policy_does_not_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("text");
    let output = without_bubblewrap(&script(path, &[], "> touched")).await;
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stderr);
    let expected = "outpost: sandbox intent cannot be enforced on this executor: ";
    assert!(printed.starts_with(expected), "{printed}");
    assert!(printed.contains("package bubblewrap"), "{printed}");
    assert!(!dir.path().join("touched").exists());
    let output = outcome(&["sandbox", "--profile", "unknown", "--", "true"], b"").await;
    assert_eq!(
        text(&output.stderr),
        "outpost: there is no profile \"unknown\"; there are :read-only, :workspace, :danger-full-access\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// A directory with the home and the runtime directory of a user.
async fn in_home(dir: &Path, args: &[&str]) -> std::process::Output {
    let tag = TestTag::new();
    let child = command(args, &tag)
        .env("HOME", dir.join("home"))
        .env("XDG_RUNTIME_DIR", dir.join("run"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("OUTPOST_CONFIG")
        .spawn();
    let output = finish(child.expect("spawn")).await;
    tag.gone().await;
    output
}

/// They would decide how the next command is sandboxed, or pose as the user's server.
#[tokio::test]
async fn configuration_and_runtime_directory_cannot_be_forged() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["home", "run"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    let (home, run) = (dir.path().join("home"), dir.path().join("run"));
    let (home_text, run_text) = (home.to_str().expect("text"), run.to_str().expect("text"));
    let config = home.join(".config/outpost/outpost.toml");
    let forge = "mkdir -p .config/outpost; rm -rf .config/outpost; mkdir -p .config/outpost; \
                 echo 'sandbox.default_profile = \":danger-full-access\"' > .config/outpost/outpost.toml; \
                 rm -rf ../run/outpost; mkdir -p ../run/outpost; mkfifo ../run/outpost/server.log; \
                 echo > .config/other";
    // First without the files, then with them.
    for round in 0..2 {
        let args = script(home_text, &["--write", run_text], forge);
        let output = in_home(dir.path(), &args).await;
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        if round == 0 {
            assert!(!config.exists(), "{printed}");
            fs::write(&config, "# mine").expect("its directory exists");
        }
        assert_eq!(fs::read(&config).expect("it exists"), b"# mine");
        let left = fs::read_dir(run.join("outpost")).expect("a directory");
        assert_eq!(left.count(), 0);
    }
}

#[tokio::test]
async fn profile_that_confines_nothing_is_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("home/.config/outpost");
    fs::create_dir_all(&config).expect("directories");
    let default = "sandbox.default_profile = \":danger-full-access\"";
    fs::write(config.join("outpost.toml"), default).expect("a file");
    let output = in_home(dir.path(), &["sandbox", "--", "true"]).await;
    assert_eq!(
        text(&output.stderr),
        "outpost: the profile :danger-full-access confines nothing: commands have full access\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

/// Landlock can't make exceptions inside a grant.
#[tokio::test]
async fn own_files_that_landlock_leaves_writable_are_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("home/.config/outpost");
    fs::create_dir_all(&config).expect("directories");
    fs::create_dir(dir.path().join("ws")).expect("a directory");
    fs::write(config.join("outpost.toml"), "sandbox.level = \"landlock\"").expect("a file");
    for (cwd, reported) in [("ws", false), ("home", true)] {
        let cwd = dir.path().join(cwd);
        let line = "cat ../home/.config/outpost/outpost.toml";
        let flags = ["--profile", ":read-only", "--write", "."];
        let args = script(cwd.to_str().expect("text"), &flags, line);
        let output = in_home(dir.path(), &args).await;
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let own = format!("the command can write {}", config.display());
        assert_eq!(printed.contains(&own), reported, "{printed}");
    }
}

#[tokio::test]
async fn explain_runs_nothing_and_shows_plan_and_enforcement() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("text");
    let args = ["sandbox", "--cwd", path, "--deny", "secret", "--explain"];
    let output = outcome(&args, b"").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(!printed.contains('\x1b'), "a pipe gets no colours");
    for expected in [
        "profile     :workspace\n".to_owned(),
        format!("write   {path}"),
        "protected: can't be created\n".to_owned(),
        format!("{path}/secret"),
        "namespaces  user, mount, PID, IPC and network, by bubblewrap ".to_owned(),
        "mounts      the listed paths, by the outpost helper".to_owned(),
        "seccomp     ".to_owned(),
    ] {
        assert!(printed.contains(&expected), "{expected} in {printed}");
    }
    let output = outcome(&[&args[..], &["--json", "--", "touch", "x"]].concat(), b"").await;
    let report: Value = serde_json::from_str(text(&output.stdout)).expect("JSON");
    assert_eq!(report["network"], "restricted");
    assert_eq!(report["refusal"], Value::Null);
    let rules = report["rules"].as_array().expect("rules");
    let own = |rule: &&Value| rule["path"] == path;
    assert_eq!(rules.iter().find(own).expect("an entry")["access"], "write");
    let output = without_bubblewrap(&args).await;
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    assert!(
        printed.contains("Cannot be enforced on this host: bwrap isn't found"),
        "{printed}"
    );
}

/// Creates a directory with a workspace and a `bwrap` that runs a shell command before the real
/// one. Bubblewrap reads its options from descriptor 5.
fn with_fake_bubblewrap(does: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("ws")).expect("a directory");
    let bwrap = dir.path().join("bwrap");
    let script = format!("#!/bin/sh\n{does}\nexec /usr/bin/bwrap \"$@\"\n");
    fs::write(&bwrap, script).expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&bwrap, executable).expect("it is a program");
    dir
}

/// Otherwise a momentary shortage of memory would weaken the sandbox for good.
#[tokio::test]
async fn other_failures_do_not_weaken_the_sandbox() {
    let fails = "/bin/grep -q -e --cap-add /proc/$$/fd/5 && \
                 { echo 'bwrap: no more of it' >&2; exit 1; }";
    let dir = with_fake_bubblewrap(fails);
    let workspace = dir.path().join("ws");
    let workspace = workspace.to_str().expect("text");
    let output = with_path(&script(workspace, &[], "> made"), dir.path()).await;
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("no more of it"), "{printed}");
    assert!(!dir.path().join("ws/made").exists());
}

/// As on hosts where a security module takes all capabilities from bubblewrap's children.
#[tokio::test]
async fn bubblewrap_mounts_where_the_helper_may_not() {
    let takes = "/bin/sed -z 's/^--cap-add$/--cap-drop/' /proc/$$/fd/5 > \"$0.args\" && \
                 exec 5< \"$0.args\"";
    let dir = with_fake_bubblewrap(takes);
    let workspace = dir.path().join("ws");
    let workspace = workspace.to_str().expect("text");

    let output = with_path(&["doctor"], dir.path()).await;
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("only bubblewrap may mount"), "{printed}");
    let args = ["sandbox", "--cwd", workspace, "--explain"];
    let output = with_path(&args, dir.path()).await;
    let printed = text(&output.stdout);
    assert!(
        printed.contains("mounts      the listed paths, by bubblewrap"),
        "{printed}"
    );
    let line = "> made && ! > /usr/made && /bin/mkdir .git/x";
    let output = with_path(&script(workspace, &[], line), dir.path()).await;
    let printed = text(&output.stderr);
    assert_eq!(
        printed.matches("Read-only file system").count(),
        2,
        "{printed}"
    );
    let left: Vec<_> = fs::read_dir(workspace).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn keys_of_detached_work_cannot_be_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = dir.path().join("state/outpost/sessions");
    fs::create_dir_all(&keys).expect("directories");
    fs::write(keys.join("abcdefgh"), "key").expect("a file");
    fs::write(dir.path().join("state/other"), "other").expect("a file");
    let path = dir.path().to_str().expect("text");
    let tag = TestTag::new();
    let read = "cat state/other; cat state/outpost/sessions/abcdefgh";
    let child = command(&script(path, &[], read), &tag)
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .spawn();
    let output = finish(child.expect("spawn")).await;
    assert_eq!(text(&output.stdout), "other", "{output:?}");
    assert_ne!(output.status.code(), Some(0));
    tag.gone().await;
}

/// As in a chroot tree below a granted path.
#[tokio::test]
async fn foreign_proc_and_sysfs_are_hidden_or_read_only() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let workspace = dir.path().join("ws");
    for name in ["proc", "sys"] {
        fs::create_dir_all(workspace.join(name)).expect("directories");
    }
    let launch = crate::outpost();
    let outpost = launch.binary().to_str().expect("text");
    let script = "ls proc; test -e proc/1 || echo hidden; echo x > sys/x";
    let script_with_mounts = format!(
        "mount -t proc proc proc && mount -t sysfs sysfs sys && test -e proc/1 && \
         exec {outpost} sandbox -- /bin/sh -c '{script}'"
    );
    // The mounts are made in a private mount namespace.
    let output = tokio::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script_with_mounts])
        .current_dir(&workspace)
        .output();
    let output = output.await.expect("it runs");
    let printed = (text(&output.stdout), text(&output.stderr));
    assert!(printed.1.contains("Permission denied"), "{printed:?}");
    assert!(printed.1.contains("Read-only file system"), "{printed:?}");
    assert_eq!(printed.0, "hidden\n", "{printed:?}");
}

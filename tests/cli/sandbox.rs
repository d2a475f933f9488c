//! `outpost sandbox` and `outpost doctor`.

use std::{fs, path::Path};

use outpost_testkit::Mark;
use serde_json::Value;

use super::{command, ended, outcome, text};

/// What it says with these arguments and without bubblewrap.
async fn without_bubblewrap(args: &[&str]) -> std::process::Output {
    with_path(args, Path::new("/nowhere")).await
}

async fn with_path(args: &[&str], path: &Path) -> std::process::Output {
    let mark = Mark::new();
    let child = command(args, &mark).env("PATH", path).spawn();
    let output = ended(child.expect("it starts")).await;
    mark.gone().await;
    output
}

/// The arguments of a script that is confined in a folder.
fn script<'a>(folder: &'a str, flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["sandbox", "--cwd", folder];
    args.extend(flags);
    args.extend(["--", "/bin/sh", "-c", script]);
    args
}

#[tokio::test]
async fn streams_and_exit_codes_are_the_commands_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("text");
    let output = outcome(
        &script(folder, &[], "cat; echo err >&2; pwd; exit 7"),
        b"typed\n",
    )
    .await;
    assert_eq!(text(&output.stdout), format!("typed\n{folder}\n"));
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
async fn what_is_granted_works_and_the_rest_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["ws", "more"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    fs::write(folder.path().join("ws/key.pem"), "secret").expect("a file");
    fs::write(folder.path().join("ws/notes"), "private").expect("a file");
    let ws = folder.path().join("ws");
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
        let said = text(&output.stderr);
        assert_eq!(output.status.success(), works, "{flags:?} {line}: {said}");
    }
    let left: Vec<_> = [".git", ".codex", ".agents", ".aws", "absent", "b"]
        .into_iter()
        .filter(|name| Path::new(ws).join(name).exists())
        .collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_name_with_brackets_is_denied_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["x[1]", "{a,b}", "to"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join("s.pem"), "secret").expect("a file");
    }
    std::os::unix::fs::symlink("to", folder.path().join("l[1]")).expect("a link");
    let path = folder.path().to_str().expect("text");
    for (deny, place) in [
        ("x[1]", "x[1]"),
        ("{a,b}", "{a,b}"),
        ("x[1]/*.pem", "x[1]"),
        ("x?1]", "x[1]"),
        ("{a,b}/*", "{a,b}"),
        ("l[1]/*.pem", "to"),
    ] {
        let line = format!("cat '{place}/s.pem'");
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
async fn the_network_is_the_hosts_only_if_it_is_granted() {
    let ours = fs::read_link("/proc/self/ns/net").expect("a namespace");
    for (flags, same) in [(&[][..], false), (&["--net"], true)] {
        let line = "readlink /proc/self/ns/net";
        let output = outcome(&script("/", flags, line), b"").await;
        let theirs = text(&output.stdout).trim();
        assert_eq!(theirs == ours.to_str().expect("text"), same, "{flags:?}");
    }
}

#[tokio::test]
async fn what_can_not_be_enforced_is_not_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let output = without_bubblewrap(&script(path, &[], "> touched")).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let expected = "outpost: sandbox intent cannot be enforced on this executor: ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("package bubblewrap"), "{said}");
    assert!(!folder.path().join("touched").exists());
    let output = outcome(&["sandbox", "--profile", "nobody-s", "--", "true"], b"").await;
    assert_eq!(
        text(&output.stderr),
        "outpost: there is no profile \"nobody-s\"; there are :read-only, :workspace, :danger-full-access\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test]
async fn an_explanation_runs_nothing_and_tells_the_plan_and_the_walls() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let args = ["sandbox", "--cwd", path, "--deny", "secret", "--explain"];
    let output = outcome(&args, b"").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(!said.contains('\x1b'), "a pipe gets no colours");
    for expected in [
        "profile     :workspace\n".to_owned(),
        format!("write   {path}"),
        "protected: can't be created\n".to_owned(),
        format!("{path}/secret"),
        "namespaces  user, mount, PID, IPC and network, by bubblewrap ".to_owned(),
        "mounts      what is listed, by the helper of outpost ".to_owned(),
        "seccomp     ".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected} in {said}");
    }
    let output = outcome(&[&args[..], &["--json", "--", "touch", "x"]].concat(), b"").await;
    let told: Value = serde_json::from_str(text(&output.stdout)).expect("JSON");
    assert_eq!(told["network"], "restricted");
    assert_eq!(told["refusal"], Value::Null);
    let rules = told["rules"].as_array().expect("rules");
    let own = |rule: &&Value| rule["path"] == path;
    assert_eq!(
        rules.iter().find(own).expect("one for it")["access"],
        "write"
    );
    let output = without_bubblewrap(&args).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.contains("It can't be enforced here: bwrap isn't found"),
        "{said}"
    );
}

/// A folder with a `bwrap` that does this before it is the real one, and a workspace.
fn with_another_bubblewrap(does: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("ws")).expect("a folder");
    let bwrap = folder.path().join("bwrap");
    let script = format!("#!/bin/sh\n{does}\nexec /usr/bin/bwrap \"$@\"\n");
    fs::write(&bwrap, script).expect("it is written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&bwrap, executable).expect("it is a program");
    folder
}

/// Else one that was short of memory for a moment would keep less from then on.
#[tokio::test]
async fn what_fails_otherwise_is_no_reason_for_less() {
    let fails = "case $* in *--cap-add*) echo 'bwrap: no more of it' >&2; exit 1;; esac";
    let folder = with_another_bubblewrap(fails);
    let workspace = folder.path().join("ws");
    let workspace = workspace.to_str().expect("text");
    let output = with_path(&script(workspace, &[], "> made"), folder.path()).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no more of it"), "{said}");
    assert!(!folder.path().join("ws/made").exists());
}

/// As where a security module takes every capability from what bubblewrap starts.
#[tokio::test]
async fn where_only_bubblewrap_may_mount_it_does() {
    let takes = "for word; do shift; \
                 [ \"$word\" = --cap-add ] && word=--cap-drop; set -- \"$@\" \"$word\"; done";
    let folder = with_another_bubblewrap(takes);
    let workspace = folder.path().join("ws");
    let workspace = workspace.to_str().expect("text");

    let output = with_path(&["doctor"], folder.path()).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("only bubblewrap may mount"), "{said}");
    let args = ["sandbox", "--cwd", workspace, "--explain"];
    let output = with_path(&args, folder.path()).await;
    let said = text(&output.stdout);
    assert!(
        said.contains("mounts      what is listed, by bubblewrap"),
        "{said}"
    );
    let tries = "> made && ! > /usr/made && /bin/mkdir .git/x";
    let output = with_path(&script(workspace, &[], tries), folder.path()).await;
    let said = text(&output.stderr);
    assert_eq!(said.matches("Read-only file system").count(), 2, "{said}");
    let left: Vec<_> = fs::read_dir(workspace).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// As in a tree for `chroot`, within what is granted.
#[tokio::test]
async fn what_the_kernel_shows_elsewhere_is_hidden_or_read_only() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("ws");
    for name in ["proc", "sys"] {
        fs::create_dir_all(workspace.join(name)).expect("folders");
    }
    let launch = crate::outpost();
    let outpost = launch.binary().to_str().expect("text");
    let tries = "ls proc; test -e proc/1 || echo hidden; echo x > sys/x";
    let around = format!(
        "mount -t proc proc proc && mount -t sysfs sysfs sys && test -e proc/1 && \
         exec {outpost} sandbox -- /bin/sh -c '{tries}'"
    );
    // With mounts of its own, which nobody else sees.
    let output = tokio::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &around])
        .current_dir(&workspace)
        .output();
    let output = output.await.expect("it runs");
    let said = (text(&output.stdout), text(&output.stderr));
    assert!(said.1.contains("Permission denied"), "{said:?}");
    assert!(said.1.contains("Read-only file system"), "{said:?}");
    assert_eq!(said.0, "hidden\n", "{said:?}");
}

#[tokio::test]
async fn the_doctor_tells_what_works_and_what_to_do() {
    let output = outcome(&["doctor"], b"").await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.ends_with("\nProcesses can be confined here.\n"),
        "{said}"
    );
    for check in [
        "bubblewrap",
        "namespaces",
        "seccomp",
        "landlock",
        "cgroups",
        "network",
    ] {
        assert!(said.contains(&format!("\n{check}")), "{check} in {said}");
    }
    let output = without_bubblewrap(&["doctor"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("bubblewrap  missing"), "{said}");
    assert!(
        said.contains("bubblewrap: install the package bubblewrap"),
        "{said}"
    );
    let output = without_bubblewrap(&["doctor", "--json"]).await;
    let told: Value = serde_json::from_str(text(&output.stdout)).expect("JSON");
    assert_eq!(told["works"], false);
    assert_eq!(told["checks"][0]["state"], "missing");
    assert_eq!(told["checks"][1]["state"], "unknown");
}

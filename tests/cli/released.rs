//! Tests clients against a stand-in for the released servers, which report less.

use std::{fs, path::Path, process::Output};

use super::{outcome, text};

/// Returns the `--on` value of such a server, which reports `cwd` as its working directory if
/// given.
fn server(dir: &Path, cwd: Option<&str>) -> String {
    let script = dir.join("released.py");
    fs::write(&script, include_str!("released.py")).unwrap();
    let cwd = cwd.unwrap_or_default();
    format!("stdio:env REPORTED_CWD={cwd} python3 {}", script.display())
}

async fn run(on: &str, args: &[&str]) -> Output {
    outcome(&[&["run", "--on", on][..], args].concat(), b"").await
}

#[tokio::test]
async fn command_runs_in_the_servers_directory_if_reported() {
    let dir = tempfile::tempdir().unwrap();
    let on = server(dir.path(), Some("file:///srv"));
    for (args, cwd) in [
        (&["4"][..], "file:///srv\n"),
        (&["--cwd", "sub", "4"], "file:///srv/sub\n"),
        (&["--cwd", "/tmp", "4"], "file:///tmp\n"),
    ] {
        let output = run(&on, args).await;
        assert_eq!(text(&output.stdout), cwd, "{args:?}: {output:?}");
        assert_eq!(output.status.code(), Some(4), "{args:?}");
    }
}

#[tokio::test]
async fn cwd_is_required_if_the_server_reports_none() {
    let dir = tempfile::tempdir().unwrap();
    let on = server(dir.path(), None);
    let output = run(&on, &["4"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("--cwd"), "{output:?}");
    let output = run(&on, &["--cwd", "/tmp", "4"]).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let output = run(&on, &["--cwd", "/tmp", "--timeout", "9s", "4"]).await;
    assert_eq!(
        output.status.code(),
        Some(1),
        "it knows no timeouts: {output:?}"
    );
    let path = dir.path().to_str().unwrap();
    let output = outcome(&["ls", "--on", &on, path], b"").await;
    assert_eq!(text(&output.stdout), "released.py\n", "{output:?}");
    let output = outcome(&["ls", "--on", &on], b"").await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = text(&output.stderr);
    assert!(
        printed.contains("does not report its working directory"),
        "{printed}"
    );
}

#[tokio::test]
async fn sandbox_without_a_directory_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let on = server(dir.path(), None);
    let serve = ["mcp", "serve", "--sandbox", ":workspace", "--on", &on];
    for cwd in [&[][..], &["--cwd", "sub"]] {
        let output = outcome(&[&serve, cwd].concat(), b"").await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let printed = text(&output.stderr);
        assert!(printed.contains("--cwd"), "{printed}");
        assert!(
            printed.contains("does not report its working directory"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn released_results_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let on = server(dir.path(), None);
    for (word, code) in [
        ("missing", 127),
        ("4294967296", 255),
        ("3221225786", 58),
        // A reported exit code counts even if the server dies right after.
        ("4!", 4),
    ] {
        let output = run(&on, &["--cwd", "/", word]).await;
        assert_eq!(output.status.code(), Some(code), "{word}: {output:?}");
    }
}

#[tokio::test]
async fn file_is_written_whole_to_a_server_without_streams() {
    let dir = tempfile::tempdir().unwrap();
    let on = server(dir.path(), None);
    let path_text = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let content = "copied\n".repeat(100_000);
    fs::write(path_text("a"), &content).unwrap();
    let (from, to) = (path_text("a"), format!(":{}", path_text("b")));
    let copied = outcome(&["cp", "-q", "--on", &on, &from, &to], b"").await;
    assert_eq!(copied.status.code(), Some(0), "{copied:?}");
    assert_eq!(fs::read_to_string(path_text("b")).unwrap(), content);
    let to = format!(":{}", path_text("c"));
    let piped = outcome(&["cp", "-q", "--on", &on, "-", &to], b"typed").await;
    assert_eq!(piped.status.code(), Some(0), "{piped:?}");
    assert_eq!(fs::read_to_string(path_text("c")).unwrap(), "typed");
    fs::File::create(path_text("large"))
        .unwrap()
        .set_len(33 << 20)
        .unwrap();
    let to = format!(":{}", path_text("d"));
    let rejected = outcome(&["cp", "-q", "--on", &on, &path_text("large"), &to], b"").await;
    assert_eq!(rejected.status.code(), Some(1), "{rejected:?}");
    assert!(text(&rejected.stderr).contains("fsWriteStream"));
    assert!(!Path::new(&path_text("d")).exists());
}

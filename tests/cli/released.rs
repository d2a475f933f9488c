//! Servers that say no more than the released ones do.

use std::{fs, path::Path, process::Output};

use super::{outcome, text};

/// Such a server, which says where it is or doesn't.
fn server(folder: &Path, cwd: Option<&str>) -> String {
    let script = folder.join("released.py");
    fs::write(&script, include_str!("released.py")).unwrap();
    let cwd = cwd.unwrap_or_default();
    format!("stdio:env SAYS_CWD={cwd} python3 {}", script.display())
}

async fn run(on: &str, args: &[&str]) -> Output {
    outcome(&[&["run", "--on", on][..], args].concat(), b"").await
}

#[tokio::test]
async fn a_command_runs_where_the_server_is_if_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let on = server(folder.path(), Some("file:///srv"));
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
async fn where_it_runs_has_to_be_said_if_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let on = server(folder.path(), None);
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
    let path = folder.path().to_str().unwrap();
    let output = outcome(&["ls", "--on", &on, path], b"").await;
    assert_eq!(text(&output.stdout), "released.py\n", "{output:?}");
    let output = outcome(&["ls", "--on", &on], b"").await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("does not say where it is"), "{said}");
}

#[tokio::test]
async fn what_is_confined_to_nowhere_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let on = server(folder.path(), None);
    let serve = ["mcp", "serve", "--sandbox", ":workspace", "--on", &on];
    for cwd in [&[][..], &["--cwd", "sub"]] {
        let output = outcome(&[&serve, cwd].concat(), b"").await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("--cwd"), "{said}");
        assert!(said.contains("does not say where it is"), "{said}");
    }
}

#[tokio::test]
async fn its_words_and_numbers_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let on = server(folder.path(), None);
    for (word, code) in [
        ("missing", 127),
        ("4294967296", 255),
        ("3221225786", 58),
        // What is known of an exit stays known, whatever becomes of the server.
        ("4!", 4),
    ] {
        let output = run(&on, &["--cwd", "/", word]).await;
        assert_eq!(output.status.code(), Some(code), "{word}: {output:?}");
    }
}

#[tokio::test]
async fn a_file_is_copied_whole_to_a_server_without_streams() {
    let folder = tempfile::tempdir().unwrap();
    let on = server(folder.path(), None);
    let word = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let content = "copied\n".repeat(100_000);
    fs::write(word("a"), &content).unwrap();
    let (from, to) = (word("a"), format!(":{}", word("b")));
    let copied = outcome(&["cp", "-q", "--on", &on, &from, &to], b"").await;
    assert_eq!(copied.status.code(), Some(0), "{copied:?}");
    assert_eq!(fs::read_to_string(word("b")).unwrap(), content);
    let to = format!(":{}", word("c"));
    let piped = outcome(&["cp", "-q", "--on", &on, "-", &to], b"typed").await;
    assert_eq!(piped.status.code(), Some(0), "{piped:?}");
    assert_eq!(fs::read_to_string(word("c")).unwrap(), "typed");
    fs::File::create(word("large"))
        .unwrap()
        .set_len(33 << 20)
        .unwrap();
    let to = format!(":{}", word("d"));
    let refused = outcome(&["cp", "-q", "--on", &on, &word("large"), &to], b"").await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("fsWriteStream"));
    assert!(!Path::new(&word("d")).exists());
}

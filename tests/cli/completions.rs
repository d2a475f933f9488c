//! Tests `outpost completions`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::outpost;

#[tokio::test]
async fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = outpost().run(&["completions", shell]).await;
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{shell}"
        );
        for word in ["outpost", "logs", "follow"] {
            assert!(
                output.stdout.contains(word),
                "{shell} knows nothing of {word}"
            );
        }
        for word in ["guard-terminal", "subreaper'", "--background"] {
            assert!(!output.stdout.contains(word), "{shell} offers {word}");
        }
    }
    assert_eq!(outpost().run(&["completions", "dos"]).await.code, Some(2));
}

#[tokio::test]
async fn bash_accepts_its_completions() {
    let output = outpost().run(&["completions", "bash"]).await;
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let script = output.stdout.into_bytes();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success());
}

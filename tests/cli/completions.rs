//! `outpost completions`: what shells need to know.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::outpost;

#[tokio::test]
async fn every_shell_gets_some() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let printed = outpost().run(&["completions", shell]).await;
        assert_eq!(
            (printed.code, printed.stderr.as_str()),
            (Some(0), ""),
            "{shell}"
        );
        for word in ["outpost", "logs", "follow"] {
            assert!(
                printed.stdout.contains(word),
                "{shell} knows nothing of {word}"
            );
        }
        for word in ["guard-terminal", "keeper'", "--background"] {
            assert!(!printed.stdout.contains(word), "{shell} offers {word}");
        }
    }
    assert_eq!(outpost().run(&["completions", "dos"]).await.code, Some(2));
}

#[tokio::test]
async fn bash_understands_them() {
    let printed = outpost().run(&["completions", "bash"]).await;
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let script = printed.stdout.into_bytes();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success());
}

//! Tests the attributes of a sandboxed process started by the server.

use outpost_testkit::{Start, file_uri, sh};
use serde_json::json;

use super::{SandboxDirs, special};
use crate::{outpost, ready};

#[tokio::test]
async fn name_environment_and_directory_are_as_requested() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let start = Start::new(
        "p",
        &[
            "/bin/sh",
            "-c",
            "echo $0; pwd; tr '\\0' '\\n' < /proc/$$/environ",
        ],
    )
    .cwd(&dirs.workspace())
    .with("arg0", "zero")
    .with("sandbox", dirs.sandbox(&[]))
    .env(&[("A", "1"), ("PATH", "/usr/bin:/bin")]);
    let log = client.run(start).await;
    let workspace = dirs.workspace();
    let expected = format!("zero\n{}\nA=1\nPATH=/usr/bin:/bin\n", workspace.display());
    assert_eq!(log.stdout(), expected, "{}", log.stderr());
}

#[tokio::test]
async fn only_own_processes_and_streams_are_visible() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "echo /proc/[0-9]*; ls /proc/$$/fd; grep -E 'Cap|NoNewPrivs' /proc/$$/status";
    let log = client.run(dirs.script("p", script)).await;
    let none = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .map(|set| format!("{set}:\t0000000000000000\n"))
        .concat();
    let expected = format!("/proc/1 /proc/2\n0\n1\n2\n{none}NoNewPrivs:\t1\n");
    assert_eq!(log.stdout(), expected, "{}", log.stderr());
}

#[tokio::test]
async fn failed_start_is_reported_as_without_a_sandbox() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let missing = dirs.outside("missing");
    let starts = [
        Start::new("p", &["/no/such/program"]),
        Start::new("p", &["nosuchprogram"]),
        Start::new("p", &["/etc/passwd"]),
        sh("p", "true").cwd(&missing),
    ];
    for start in starts {
        let free = client.start_fails(start.clone()).await;
        let sandboxed = start.with("sandbox", dirs.sandbox(&[]));
        let sandboxed = client.start_fails(sandboxed).await;
        assert_eq!(sandboxed.parts(), free.parts());
    }
    assert_eq!(client.listed("p").await, None);
}

/// Root has no capabilities inside, so some directories are unreadable even for root.
#[tokio::test]
async fn unmountable_path_is_named() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let foreign = dirs.outside("theirs");
    let within = foreign.join("within");
    std::fs::create_dir_all(&within).expect("directories");
    std::os::unix::fs::chown(&foreign, Some(65534), None).expect("chown");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&foreign, closed).expect("it is closed");
    let entry = json!({"path": {"type": "path", "path": file_uri(&within)}, "access": "write"});
    let start = sh("p", "true").with("sandbox", dirs.sandbox(&[entry]));
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32602);
    let message = format!(
        "failed to prepare process sandbox: cannot mount the sandbox's files ({}): Permission denied (os error 13)",
        within.display()
    );
    assert_eq!(error.message, message);
}

#[tokio::test]
async fn hidden_program_cannot_be_executed() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let mut sandbox = dirs.sandbox(&[]);
    sandbox["permissions"]["file_system"]["entries"] = json!([special("project_roots", "write")]);
    let start = sh("p", "true")
        .cwd(&dirs.workspace())
        .with("sandbox", sandbox);
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32603);
    let message = "No such file or directory (os error 2)";
    assert!(error.message.ends_with(message), "{}", error.message);
}

#[tokio::test]
async fn mistyped_policy_is_rejected() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let access = json!({"write": null});
    for entry in [
        json!({"path": {"type": "special", "value": {"kind": 0}}, "access": "write"}),
        json!({"path": {"type": "special", "value": {"kind": "root"}}, "access": access}),
        json!({"path": {"type": "glob_pattern", "pattern": ""}, "access": "deny"}),
    ] {
        let sandbox = dirs.sandbox(&[entry]);
        let start = sh("p", "true")
            .cwd(&dirs.workspace())
            .with("sandbox", sandbox);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602, "{}", error.message);
    }
}

#[tokio::test]
async fn exit_codes_pass_with_every_tree_kind() {
    for trees in ["auto", "subreaper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        for (script, code) in [
            ("exit 7", 7),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            let log = client.run(dirs.script(script, script)).await;
            assert_eq!(log.code(), code, "{trees}: {script}");
            log.check();
        }
    }
}

#[tokio::test]
async fn keys_stored_after_the_start_of_the_server_are_hidden() {
    let dirs = SandboxDirs::new();
    let state = dirs.workspace().join("state");
    let server = outpost()
        .env("XDG_STATE_HOME", state.to_str().expect("text"))
        .start()
        .await;
    let client = server.client().await;
    let script = "cat state/outpost/other; cat state/outpost/sessions/abcdefgh";
    let before = client.run(dirs.script("before", script)).await;
    assert_eq!(before.stdout(), "", "{}", before.stderr());
    let keys = state.join("outpost/sessions");
    std::fs::create_dir_all(&keys).expect("directories");
    std::fs::write(keys.join("abcdefgh"), "key").expect("a file");
    std::fs::write(state.join("outpost/other"), "other").expect("a file");
    let after = client.run(dirs.script("after", script)).await;
    assert_eq!(after.stdout(), "other", "{}", after.stderr());
}

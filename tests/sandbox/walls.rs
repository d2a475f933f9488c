//! What a confined process is and has, as started by the server.

use outpost_testkit::{Start, file_uri, sh};
use serde_json::json;

use super::Site;
use crate::{outpost, ready};

#[tokio::test]
async fn its_name_its_environment_and_its_folder_are_what_was_asked_for() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let start = Start::new(
        "p",
        &[
            "/bin/sh",
            "-c",
            "echo $0; pwd; tr '\\0' '\\n' < /proc/$$/environ",
        ],
    )
    .cwd(&site.workspace())
    .with("arg0", "zero")
    .with("sandbox", site.sandbox(&[]))
    .env(&[("A", "1"), ("PATH", "/usr/bin:/bin")]);
    let story = client.run(start).await;
    let workspace = site.workspace();
    let expected = format!("zero\n{}\nA=1\nPATH=/usr/bin:/bin\n", workspace.display());
    assert_eq!(story.stdout(), expected, "{}", story.stderr());
}

#[tokio::test]
async fn it_sees_nobody_but_itself_and_has_only_its_streams() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "echo /proc/[0-9]*; ls /proc/$$/fd; grep -E 'Cap|NoNewPrivs' /proc/$$/status";
    let story = client.run(site.script("p", script)).await;
    let none = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .map(|set| format!("{set}:\t0000000000000000\n"))
        .concat();
    let expected = format!("/proc/1 /proc/2\n0\n1\n2\n{none}NoNewPrivs:\t1\n");
    assert_eq!(story.stdout(), expected, "{}", story.stderr());
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_as_without_a_sandbox() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let missing = site.outside("missing");
    let starts = [
        Start::new("p", &["/no/such/program"]),
        Start::new("p", &["nosuchprogram"]),
        Start::new("p", &["/etc/passwd"]),
        sh("p", "true").cwd(&missing),
    ];
    for start in starts {
        let free = client.start_fails(start.clone()).await;
        let confined = start.with("sandbox", site.sandbox(&[]));
        let confined = client.start_fails(confined).await;
        assert_eq!(confined.parts(), free.parts());
    }
    assert_eq!(client.listed("p").await, None);
}

/// Root has no capabilities inside, so there are directories that it can't look into.
#[tokio::test]
async fn what_cannot_be_mounted_is_named() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_server, client) = ready().await;
    let site = Site::new();
    let theirs = site.outside("theirs");
    let within = theirs.join("within");
    std::fs::create_dir_all(&within).expect("folders");
    std::os::unix::fs::chown(&theirs, Some(65534), None).expect("it changes hands");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&theirs, closed).expect("it is closed");
    let entry = json!({"path": {"type": "path", "path": file_uri(&within)}, "access": "write"});
    let start = sh("p", "true").with("sandbox", site.sandbox(&[entry]));
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32602);
    let words = format!(
        "failed to prepare process sandbox: cannot mount what is granted ({}): Permission denied (os error 13)",
        within.display()
    );
    assert_eq!(error.message, words);
}

#[tokio::test]
async fn a_plan_that_hides_what_the_stages_need_is_refused() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let mut sandbox = site.sandbox(&[]);
    sandbox["permissions"]["file_system"]["entries"] = json!([]);
    let start = sh("p", "true").with("sandbox", sandbox);
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32602);
    let words = "sandbox intent cannot be enforced on this executor: the plan doesn't show ";
    assert!(error.message.starts_with(words), "{}", error.message);
}

#[tokio::test]
async fn what_is_mistyped_is_refused() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let access = json!({"write": null});
    for entry in [
        json!({"path": {"type": "special", "value": {"kind": 0}}, "access": "write"}),
        json!({"path": {"type": "special", "value": {"kind": "root"}}, "access": access}),
        json!({"path": {"type": "glob_pattern", "pattern": ""}, "access": "deny"}),
    ] {
        let sandbox = site.sandbox(&[entry]);
        let start = sh("p", "true")
            .cwd(&site.workspace())
            .with("sandbox", sandbox);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602, "{}", error.message);
    }
}

/// By whatever means trees are kept.
#[tokio::test]
async fn codes_come_through_with_every_kind_of_tree() {
    for trees in ["auto", "keeper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        for (script, code) in [
            ("exit 7", 7),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            let story = client.run(site.script(script, script)).await;
            assert_eq!(story.code(), code, "{trees}: {script}");
            story.check();
        }
    }
}

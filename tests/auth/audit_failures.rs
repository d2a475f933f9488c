//! Tests an audit log that cannot be written.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{BufRead as _, BufReader},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use outpost_testkit::{deadline::poll_until, file_uri, sh};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use serde_json::json;

use super::support::Directories;
use crate::outpost;

const REFUSED: &str = "the audit log cannot be written, and the server refuses new work until it can; \
                       the cause is in the server's log";

#[tokio::test]
async fn full_disk_is_logged_and_counted() {
    let server = outpost().args(&["--audit-log", "/dev/full"]).start().await;
    let client = server.client().await;
    let log = client.run(sh("p", "echo hi")).await;
    assert_eq!(log.stdout(), "hi\n", "the log is not required");
    let text = "cannot write the audit log; trying again";
    poll_until("the error", || server.stderr().contains(text).then_some(())).await;
    let log = server.stderr();
    let logged = log.lines().find(|line| line.contains(text));
    let logged = logged.expect("a line");
    for part in ["/dev/full", "failures=1", "No space left on device"] {
        assert!(logged.contains(part), "{logged}");
    }
}

#[tokio::test]
async fn log_that_is_no_regular_file_does_not_hinder_sandboxes() {
    let directories = Directories::new();
    let token = directories.token("ci").await;
    let pipe = directories.path("audit.pipe");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe");
    let _reader = open_reader(&pipe);
    let path = directories.text("audit.pipe");
    for log in ["/dev/full", &path] {
        let config = "[principals.ci]\nsandbox = \":workspace\"\n";
        let server = directories.server(config).args(&["--audit-log", log]);
        let server = server.start().await;
        let client = server.client_with_token(&token).await;
        let script = format!("echo hi; echo x > {path}; true");
        let output = client.run(sh("p", &script)).await;
        assert_eq!(output.stdout(), "hi\n", "{log}: {}", output.stderr());
    }
}

/// Opens a pipe for reading without waiting for a writer.
fn open_reader(path: &Path) -> BufReader<File> {
    let mut options = OpenOptions::new();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.read(true).custom_flags(nonblocking).open(path);
    let file = file.expect("a pipe");
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).expect("it waits for lines");
    BufReader::new(file)
}

#[tokio::test]
async fn required_log_refuses_new_work_until_it_can_be_written() {
    let directories = Directories::new();
    let pipe = directories.path("audit.pipe");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe");
    let reader = open_reader(&pipe);
    let (path, file) = (directories.text("audit.pipe"), directories.path("new"));
    let args = ["--audit-log", &path, "--audit-required"];
    let server = outpost().args(&args).start().await;
    let client = server.client().await;
    client.start(sh("running", "cat").stdin()).await;

    drop(reader);
    // The first write finds the pipe without a reader.
    let mut attempts = 0;
    let error = loop {
        attempts += 1;
        let id = format!("p{attempts}");
        let params = json!({"processId": id, "argv": ["true"], "cwd": "file:///", "tty": false});
        match client.try_call("process/start", params).await {
            Ok(_) => client.closed(&id).await,
            Err(error) => break error,
        };
    };
    assert_eq!(error.parts(), (-32603, REFUSED));
    let written = json!({"path": file_uri(&file), "dataBase64": ""});
    let requested =
        json!({"method": "GET", "url": "http://127.0.0.1:1/", "headers": [], "requestId": "r"});
    let executed = json!({"command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"}});
    for (method, params) in [
        ("fs/writeFile", &written),
        ("fs/remove", &json!({"path": file_uri(&file)})),
        ("http/request", &requested),
        ("command/exec", &executed),
    ] {
        let error = client.call_fails(method, params.clone()).await;
        assert_eq!(error.parts(), (-32603, REFUSED), "{method}");
    }
    assert!(!file.exists());
    let read = json!({"path": file_uri(&directories.path("outside/file"))});
    client.call("fs/readFile", read).await;
    client.write("running", "still here", "w").await;
    client.wait_output("running", "still here").await;

    let mut reader = open_reader(&pipe);
    poll_until("accepted work", || {
        server
            .stderr()
            .contains("audit log can be written again")
            .then_some(())
    })
    .await;
    client.call("fs/writeFile", written).await;
    client.run(sh("later", "true")).await;
    assert!(client.terminate("running").await);
    let mut lines = String::new();
    while !lines.contains("\"later\"") {
        reader.read_line(&mut lines).expect("a line");
    }
    assert!(lines.contains("\"write_file\""), "{lines}");
    assert!(
        !lines.contains("\"http\""),
        "refused work is not recorded: {lines}"
    );
}

#[tokio::test]
async fn server_does_not_start_without_its_log() {
    let directories = Directories::new();
    let missing = directories.text("missing/audit.log");
    let link = directories.text("ws/link");
    for (args, text) in [
        (vec!["--audit-log", &missing], "No such file or directory"),
        (
            vec!["--audit-log", &link],
            "Too many levels of symbolic links",
        ),
        (
            vec!["--audit-required"],
            "--audit-required needs --audit-log FILE",
        ),
    ] {
        let args = [&["serve"], &args[..]].concat();
        let output = outpost().run(&args).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(text), "{}", output.stderr);
    }
}

#[tokio::test]
async fn file_that_others_can_read_is_reported() {
    let directories = Directories::new();
    let path = directories.path("audit.log");
    let text = "the audit log can be read or written by others";
    for (mode, is_reported) in [(0o644, true), (0o600, false)] {
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        let args = ["--audit-log", &directories.text("audit.log")];
        let server = outpost().args(&args).start().await;
        poll_until("the log", || {
            server.stderr().contains("serving").then_some(())
        })
        .await;
        assert_eq!(server.stderr().contains(text), is_reported, "{mode:o}");
    }
}

#[tokio::test]
async fn lines_go_to_stderr_on_request() {
    let server = outpost().args(&["--audit-log", "stderr"]).start().await;
    let client = server.client().await;
    client.run(sh("p", "true")).await;
    let found = poll_until("a line", || {
        let text = server.stderr();
        let line = text.lines().find(|line| line.contains("\"exit\""))?;
        serde_json::from_str::<serde_json::Value>(line).ok()
    });
    assert_eq!(found.await["process"], "p");
}

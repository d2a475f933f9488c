//! Landlock without namespaces: what is enforced, and what isn't.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use outpost_sandbox::{Access, Level, PrepareError};

use crate::fixture::{Fixture, is_root, text};

#[test]
fn only_granted_paths_are_writable() {
    let fixture = Fixture::new().at(Level::Landlock);
    let file = fixture.file(fixture.inside("file"));
    for attempt in ["write", "read", "chmod", "touch"] {
        fixture.sandboxed(&[attempt, text(&file)]).assert_success();
    }
    fixture
        .sandboxed(&["create", text(&fixture.inside("new"))])
        .assert_success();
    let outside = fixture.file(fixture.outside("file"));
    fixture
        .sandboxed(&["read", text(&outside)])
        .assert_success();
    fixture
        .unsandboxed(&["write", text(&outside)])
        .assert_success();
    fixture
        .sandboxed(&["write", text(&outside)])
        .assert_fails("Permission denied");
    fixture
        .sandboxed(&["create", text(&fixture.outside("new"))])
        .assert_fails("Permission denied");
    // The weaker promise of this level.
    fixture
        .sandboxed(&["chmod", text(&outside)])
        .assert_success();
}

#[test]
fn sockets_and_bypassing_calls_are_rejected() {
    let fixture = Fixture::new().at(Level::Landlock);
    let path = fixture.inside("socket");
    let _listener = UnixListener::bind(&path).expect("bind");
    fixture
        .sandboxed(&["unix-stream", text(&path)])
        .assert_fails("not permitted");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener
        .local_addr()
        .expect("local address")
        .port()
        .to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"x");
        }
    });
    fixture.unsandboxed(&["tcp", &port]).assert_success();
    fixture
        .sandboxed(&["tcp", &port])
        .assert_fails("not permitted");
    fixture
        .sandboxed(&["udp", &port])
        .assert_fails("not permitted");
    for attempt in ["trace", "memory", "keys", "user-namespace", "ring", "type"] {
        fixture.sandboxed(&[attempt]).assert_fails("not permitted");
    }
}

#[test]
fn exit_codes_are_passed_on_without_bubblewrap() {
    let fixture = Fixture::new().at(Level::Landlock);
    assert_eq!(fixture.script("exit 7").code(), 7);
    assert_eq!(fixture.script("kill -TERM $$").code(), 143);
    let support = fixture.sandbox().preflight().expect("host is supported");
    assert_eq!(text(&support.bubblewrap), "");
    let open = fixture.script("ls /proc/self/fd | wc -l; env").stdout();
    assert!(open.starts_with("4\nP"), "{open}");
}

#[test]
fn denial_below_a_grant_is_rejected() {
    let fixture = Fixture::new().at(Level::Landlock);
    let file = fixture.file(fixture.inside("key.pem"));
    let fixture = fixture.and(Access::Deny, &file);
    let rejected = fixture.sandbox().prepare(&fixture.plan, fixture.program());
    assert!(matches!(rejected, Err(PrepareError::DeniedBelowGrant(path)) if path == file));
}

#[test]
fn denial_of_an_absent_path_is_rejected() {
    let mut fixture = Fixture::new().at(Level::Landlock);
    let file = fixture.file(fixture.inside("file"));
    let workspace = fixture.inside("");
    for denied in [fixture.inside("absent"), file.join("below")] {
        fixture.plan_paths(&[
            (Access::Read, Path::new("/")),
            (Access::Write, &workspace),
            (Access::Deny, &denied),
        ]);
        let rejected = fixture.sandbox().prepare(&fixture.plan, fixture.program());
        assert!(matches!(rejected, Err(PrepareError::DeniedBelowGrant(path)) if path == denied));
    }
}

/// Root's capabilities would be valid on the host.
#[test]
fn process_has_no_capabilities() {
    let status = Fixture::new()
        .at(Level::Landlock)
        .script("cat /proc/self/status")
        .stdout();
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        assert_eq!(set.map(str::trim), Some("0000000000000000"), "{name}");
    }
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let foreign = fixture.file(fixture.inside("theirs"));
    std::os::unix::fs::chown(&foreign, Some(65534), None).expect("chown");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&foreign, closed).expect("chmod");
    fixture
        .unsandboxed(&["read", text(&foreign)])
        .assert_success();
    fixture
        .at(Level::Landlock)
        .sandboxed(&["read", text(&foreign)])
        .assert_fails("Permission denied");
}

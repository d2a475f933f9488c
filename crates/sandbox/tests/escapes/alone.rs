//! Without namespaces, as an operator may choose: what is still kept, and what isn't.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use outpost_sandbox::{Access, PrepareError, Program};

use crate::cell::{Cell, is_root, text};

#[test]
fn what_is_granted_works_and_nothing_else_can_be_written() {
    let cell = Cell::new().alone();
    let file = cell.file(cell.inside("file"));
    for attempt in ["write", "read", "chmod", "touch"] {
        cell.confined(&[attempt, text(&file)]).succeeds();
    }
    cell.confined(&["create", text(&cell.inside("new"))])
        .succeeds();
    let beside = cell.file(cell.outside("file"));
    cell.confined(&["read", text(&beside)]).succeeds();
    cell.free(&["write", text(&beside)]).succeeds();
    cell.confined(&["write", text(&beside)])
        .fails("Permission denied");
    cell.confined(&["create", text(&cell.outside("new"))])
        .fails("Permission denied");
    // The weaker promise, which is why nobody gets it unasked.
    cell.confined(&["chmod", text(&beside)]).succeeds();
}

#[test]
fn there_is_no_socket_and_no_way_around_the_filter() {
    let cell = Cell::new().alone();
    let path = cell.inside("socket");
    let _listener = UnixListener::bind(&path).expect("it listens");
    cell.confined(&["unix-stream", text(&path)])
        .fails("not permitted");
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let port = listener
        .local_addr()
        .expect("it has one")
        .port()
        .to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"x");
        }
    });
    cell.free(&["tcp", &port]).succeeds();
    cell.confined(&["tcp", &port]).fails("not permitted");
    cell.confined(&["udp", &port]).fails("not permitted");
    for attempt in ["trace", "memory", "keys", "user-namespace", "ring", "type"] {
        cell.confined(&[attempt]).fails("not permitted");
    }
}

#[test]
fn codes_come_through_and_bubblewrap_has_no_part_in_it() {
    let cell = Cell::new().alone();
    assert_eq!(cell.script("exit 7").code(), 7);
    assert_eq!(cell.script("kill -TERM $$").code(), 143);
    let means = cell.sandbox().preflight().expect("this kernel has it");
    assert_eq!(text(&means.bubblewrap), "");
    let open = cell.script("ls /proc/self/fd | wc -l; env").stdout();
    assert!(open.starts_with("4\nP"), "{open}");
}

#[test]
fn what_it_cannot_deny_is_refused() {
    let cell = Cell::new().alone();
    let file = cell.file(cell.inside("key.pem"));
    let cell = cell.and(Access::Deny, &file);
    let program = Program {
        candidates: b"/bin/true\0".to_vec(),
        argv: b"true\0".to_vec(),
        env: Vec::new(),
        cwd: "/".into(),
    };
    let refused = cell.sandbox().confine(&cell.plan, program);
    assert!(matches!(refused, Err(PrepareError::Within(path)) if path == file));
}

#[test]
fn what_is_absent_can_not_be_denied_either() {
    let mut cell = Cell::new().alone();
    let file = cell.file(cell.inside("file"));
    let workspace = cell.inside("");
    for denied in [cell.inside("absent"), file.join("below")] {
        cell.follow(&[
            (Access::Read, Path::new("/")),
            (Access::Write, &workspace),
            (Access::Deny, &denied),
        ]);
        let refused = cell.sandbox().confine(&cell.plan, cell.program());
        assert!(matches!(refused, Err(PrepareError::Within(path)) if path == denied));
    }
}

/// Those of root would be the host's.
#[test]
fn it_has_no_capabilities_without_namespaces_either() {
    let status = Cell::new().alone().script("cat /proc/self/status").stdout();
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        assert_eq!(set.map(str::trim), Some("0000000000000000"), "{name}");
    }
    if !is_root() {
        return;
    }
    let cell = Cell::new();
    let theirs = cell.file(cell.inside("theirs"));
    std::os::unix::fs::chown(&theirs, Some(65534), None).expect("it changes hands");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&theirs, closed).expect("it is closed");
    cell.free(&["read", text(&theirs)]).succeeds();
    cell.alone()
        .confined(&["read", text(&theirs)])
        .fails("Permission denied");
}

//! The table of methods.

use outpost_protocol::{Method, family_of_name};

#[test]
fn table() {
    let rows: String = Method::ALL
        .iter()
        .map(|method| {
            format!(
                "{method:?} {} family={:?} lane={:?}\n",
                method.name(),
                method.family().name(),
                method.lane()
            )
        })
        .collect();
    insta::assert_snapshot!(rows, @r#"
    Initialize initialize family="handshake" lane=Handshake
    ProcessStart process/start family="exec" lane=Process
    ProcessRead process/read family="exec" lane=Process
    ProcessWrite process/write family="exec" lane=Process
    ProcessSignal process/signal family="exec" lane=Control
    ProcessTerminate process/terminate family="exec" lane=Control
    ProcessResize process/resize family="exec" lane=Control
    ProcessList process/list family="exec" lane=Free
    ProcessSpawn process/spawn family="app-server" lane=Process
    ProcessWriteStdin process/writeStdin family="app-server" lane=Process
    ProcessResizePty process/resizePty family="app-server" lane=Control
    ProcessKill process/kill family="app-server" lane=Control
    CommandExec command/exec family="app-server" lane=Process
    CommandExecWrite command/exec/write family="app-server" lane=Process
    CommandExecResize command/exec/resize family="app-server" lane=Control
    CommandExecTerminate command/exec/terminate family="app-server" lane=Control
    EnvironmentInfo environment/info family="environment info" lane=Control
    EnvironmentStatus environment/status family="environment status" lane=Control
    SessionClose session/close family="exec" lane=Free
    SessionList session/list family="exec" lane=Free
    ConfigRead config/read family="app-server" lane=Free
    FsReadFile fs/readFile family="filesystem" lane=Process
    FsOpen fs/open family="filesystem" lane=Process
    FsReadBlock fs/readBlock family="filesystem" lane=Process
    FsClose fs/close family="filesystem" lane=Control
    FsWriteFile fs/writeFile family="filesystem" lane=Process
    FsCreateDirectory fs/createDirectory family="filesystem" lane=Process
    FsGetMetadata fs/getMetadata family="filesystem" lane=Process
    FsCanonicalize fs/canonicalize family="filesystem" lane=Process
    FsReadDirectory fs/readDirectory family="filesystem" lane=Process
    FsWalk fs/walk family="filesystem" lane=Process
    FsRemove fs/remove family="filesystem" lane=Process
    FsCopy fs/copy family="filesystem" lane=Process
    FsCreateStream fs/createStream family="filesystem" lane=Process
    FsWriteBlock fs/writeBlock family="filesystem" lane=Process
    FsCommit fs/commit family="filesystem" lane=Process
    HttpRequest http/request family="http" lane=Free
    "#);
}

#[test]
fn methods_are_found_by_name() {
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(method));
        assert_eq!(family_of_name(method.name()), Some(method.family()));
    }
    for name in [
        "",
        "process",
        "process/",
        "process/Start",
        "process/start ",
        "initialized",
    ] {
        assert_eq!(Method::from_name(name), None, "{name:?}");
    }
}

#[test]
fn unserved_names_have_families() {
    let names = [
        "fs/readFile",
        "fs/anything",
        "http/request",
        "process/spawn",
        "process/kill",
        "command/exec",
        "config/read",
        "environmentConfig/read",
        "session/list",
        "fs",
        "no/such",
    ];
    let rows: String = names
        .iter()
        .map(|name| format!("{name} {:?}\n", family_of_name(name)))
        .collect();
    insta::assert_snapshot!(rows, @r"
    fs/readFile Some(Filesystem)
    fs/anything Some(Filesystem)
    http/request Some(Http)
    process/spawn Some(App)
    process/kill Some(App)
    command/exec Some(App)
    config/read Some(App)
    environmentConfig/read None
    session/list Some(Exec)
    fs None
    no/such None
    ");
}

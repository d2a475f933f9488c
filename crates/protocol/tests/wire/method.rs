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
    ProcessStart process/start family="exec" lane=Keyed
    ProcessRead process/read family="exec" lane=Keyed
    ProcessWrite process/write family="exec" lane=Keyed
    ProcessSignal process/signal family="exec" lane=Control
    ProcessTerminate process/terminate family="exec" lane=Control
    ProcessResize process/resize family="exec" lane=Control
    ProcessList process/list family="exec" lane=Free
    ProcessNetwork process/network family="exec" lane=Keyed
    ProcessSpawn process/spawn family="app-server" lane=Keyed
    ProcessWriteStdin process/writeStdin family="app-server" lane=Keyed
    ProcessResizePty process/resizePty family="app-server" lane=Control
    ProcessKill process/kill family="app-server" lane=Control
    CommandExec command/exec family="app-server" lane=Keyed
    CommandExecWrite command/exec/write family="app-server" lane=Keyed
    CommandExecResize command/exec/resize family="app-server" lane=Control
    CommandExecTerminate command/exec/terminate family="app-server" lane=Control
    EnvironmentInfo environment/info family="environment info" lane=Control
    EnvironmentStatus environment/status family="environment status" lane=Control
    EnvironmentConfigRead environmentConfig/read family="environment config" lane=Free
    CapabilityRootsDiscover capabilityRoots/discoverV1 family="capability discovery" lane=Free
    CapabilitiesDiscover capabilities/discoverV2 family="capability discovery" lane=Free
    SessionClose session/close family="exec" lane=Free
    SessionList session/list family="exec" lane=Free
    SessionLease session/lease family="exec" lane=Control
    ConfigRead config/read family="app-server" lane=Free
    FsReadFile fs/readFile family="filesystem" lane=Keyed
    FsOpen fs/open family="filesystem" lane=Keyed
    FsReadBlock fs/readBlock family="filesystem" lane=Keyed
    FsClose fs/close family="filesystem" lane=Control
    FsWriteFile fs/writeFile family="filesystem" lane=Keyed
    FsCreateDirectory fs/createDirectory family="filesystem" lane=Keyed
    FsGetMetadata fs/getMetadata family="filesystem" lane=Keyed
    FsCanonicalize fs/canonicalize family="filesystem" lane=Keyed
    FsReadDirectory fs/readDirectory family="filesystem" lane=Keyed
    FsWalk fs/walk family="filesystem" lane=Keyed
    FsRemove fs/remove family="filesystem" lane=Keyed
    FsCopy fs/copy family="filesystem" lane=Keyed
    FsCreateStream fs/createStream family="filesystem" lane=Keyed
    FsWriteBlock fs/writeBlock family="filesystem" lane=Keyed
    FsCommit fs/commit family="filesystem" lane=Keyed
    FsWatch fs/watch family="filesystem" lane=Keyed
    FsUnwatch fs/unwatch family="filesystem" lane=Control
    FsWatchMissing fs/watchMissing family="filesystem" lane=Keyed
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
    environmentConfig/read Some(EnvironmentConfig)
    session/list Some(Exec)
    fs None
    no/such None
    ");
}

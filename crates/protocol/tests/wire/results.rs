//! The wire form of every result and notification.

use std::path::Path;

use outpost_protocol::{
    Empty, EndedBy, EnvironmentCapabilities, EnvironmentInfo, InitializeResult, ListResult,
    PROCESS_CLOSED, PROCESS_EXITED, PROCESS_OUTPUT, PROTOCOL_VERSION, PathUri, ProcessClosed,
    ProcessEntry, ProcessExited, ProcessOutput, ProcessState, ReadChunk, ReadResult, RequestId,
    ResourceUsage, SandboxType, ServerCapabilities, ServerInfo, Shell, StartResult, StatusResult,
    Stream, TerminateResult, TreeKind, WriteResult, WriteStatus, encode_notification,
    encode_response,
};
use serde::Serialize;

fn response(result: &impl Serialize) -> String {
    let mut out = Vec::new();
    encode_response(&mut out, &RequestId::Integer(1), result).unwrap();
    String::from_utf8(out).unwrap()
}

fn notification(method: &str, params: &impl Serialize) -> String {
    let mut out = Vec::new();
    encode_notification(&mut out, method, params).unwrap();
    String::from_utf8(out).unwrap()
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

fn uri(path: &str) -> PathUri {
    PathUri::from_path(Path::new(path))
}

fn environment_info() -> EnvironmentInfo {
    EnvironmentInfo {
        shell: Shell {
            name: "bash".to_owned(),
            path: "/bin/bash".to_owned(),
        },
        executor_version: "0.1.0".to_owned(),
        provider_id: "sha256:0".to_owned(),
        cwd: uri("/srv/my project"),
        user_home_dir: None,
        platform_os: "linux".to_owned(),
        temporary_directories: vec![uri("/var/tmp")],
        temp_dir: uri("/var/tmp"),
        process_trees: TreeKind::Subreaper,
        sandbox: None,
        limits: None,
        capabilities: EnvironmentCapabilities::default(),
    }
}

#[test]
fn initialize() {
    let result = InitializeResult {
        session_id: "00000000-0000-4000-8000-000000000000".to_owned(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        server_info: ServerInfo {
            name: "outpost".to_owned(),
            version: "0.1.0".to_owned(),
        },
        user_agent: "outpost/0.1.0".to_owned(),
        codex_home: "/srv/home/.config/outpost".to_owned(),
        platform_os: "linux".to_owned(),
        platform_family: "unix".to_owned(),
        environment_info: environment_info(),
        capabilities: ServerCapabilities {
            close_stdin: true,
            ..ServerCapabilities::default()
        },
    };
    insta::assert_snapshot!(response(&result), @r#"{"id":1,"result":{"sessionId":"00000000-0000-4000-8000-000000000000","protocolVersion":"exec-server.v0","serverInfo":{"name":"outpost","version":"0.1.0"},"userAgent":"outpost/0.1.0","codexHome":"/srv/home/.config/outpost","platformOs":"linux","platformFamily":"unix","environmentInfo":{"shell":{"name":"bash","path":"/bin/bash"},"executorVersion":"0.1.0","providerId":"sha256:0","cwd":"file:///srv/my%20project","userHomeDir":null,"platformOs":"linux","temporaryDirectories":["file:///var/tmp"],"tempDir":"file:///var/tmp","processTrees":"subreaper","capabilities":{"networkProxyLaunch":false,"networkProxyReviewDomains":false,"credentialMasking":false,"credentialMaskingCustomProviders":false,"capabilityDiscoverySandbox":false,"fsWatchMissing":false,"capabilityDiscoveryV2":false,"environmentConfigRead":false,"httpHeaderEnvVars":false,"sandboxedFileStreaming":false,"fileWriteStreaming":false,"shellSnapshotV2":false,"windowsMxc":false,"linuxRootWritePreservesDevices":false,"linuxApprovedRootWritePreservesRestrictions":false}},"capabilities":{"acked":false,"binaryFrames":false,"closeStdin":true,"resize":false,"signals":false,"timeouts":false,"processList":false,"sessionList":false,"takeover":false,"terminateTree":false,"fsWriteStream":false,"fsWatch":false,"limits":false,"networkPolicies":false,"processNetwork":false,"strict":false}}}"#);
}

#[test]
fn environment() {
    let info = EnvironmentInfo {
        user_home_dir: Some(uri("/srv/home")),
        ..environment_info()
    };
    insta::assert_snapshot!(
        lines([response(&info), response(&StatusResult::default())]),
        @r#"
        {"id":1,"result":{"shell":{"name":"bash","path":"/bin/bash"},"executorVersion":"0.1.0","providerId":"sha256:0","cwd":"file:///srv/my%20project","userHomeDir":"file:///srv/home","platformOs":"linux","temporaryDirectories":["file:///var/tmp"],"tempDir":"file:///var/tmp","processTrees":"subreaper","capabilities":{"networkProxyLaunch":false,"networkProxyReviewDomains":false,"credentialMasking":false,"credentialMaskingCustomProviders":false,"capabilityDiscoverySandbox":false,"fsWatchMissing":false,"capabilityDiscoveryV2":false,"environmentConfigRead":false,"httpHeaderEnvVars":false,"sandboxedFileStreaming":false,"fileWriteStreaming":false,"shellSnapshotV2":false,"windowsMxc":false,"linuxRootWritePreservesDevices":false,"linuxApprovedRootWritePreservesRestrictions":false}}}
        {"id":1,"result":{"status":"ready"}}
        "#
    );
}

#[test]
fn start() {
    let types = [
        SandboxType::None,
        SandboxType::LinuxSeccomp,
        SandboxType::MacosSeatbelt,
        SandboxType::WindowsRestrictedToken,
    ];
    let results = types.map(|sandbox_type| {
        response(&StartResult {
            process_id: "proc-1".to_owned(),
            sandbox_type,
        })
    });
    insta::assert_snapshot!(lines(results), @r#"
    {"id":1,"result":{"processId":"proc-1","sandboxType":"none"}}
    {"id":1,"result":{"processId":"proc-1","sandboxType":"linuxSeccomp"}}
    {"id":1,"result":{"processId":"proc-1","sandboxType":"macosSeatbelt"}}
    {"id":1,"result":{"processId":"proc-1","sandboxType":"windowsRestrictedToken"}}
    "#);
}

#[test]
fn read() {
    let nothing = ReadResult::<&[u8]> {
        chunks: Vec::new(),
        next_seq: 1,
        exited: false,
        exit_code: None,
        closed: false,
        failure: None,
        sandbox_denied: false,
        ended_by: None,
        usage: None,
    };
    let everything = ReadResult::<&[u8]> {
        chunks: vec![
            ReadChunk {
                seq: 1,
                stream: Stream::Stdout,
                chunk: b"hello\n",
            },
            ReadChunk {
                seq: 2,
                stream: Stream::Stderr,
                chunk: b"\xff",
            },
            ReadChunk {
                seq: 3,
                stream: Stream::Pty,
                chunk: b"",
            },
        ],
        next_seq: 6,
        exited: true,
        exit_code: Some(-1),
        closed: true,
        failure: Some("lost".to_owned()),
        sandbox_denied: true,
        ended_by: Some(EndedBy::Lost),
        usage: None,
    };
    let json = serde_json::to_string(&everything).unwrap();
    let owned: ReadResult = serde_json::from_str(&json).unwrap();
    assert_eq!(owned.chunks[1].chunk, b"\xff");
    assert_eq!(serde_json::to_string(&owned).unwrap(), json);
    insta::assert_snapshot!(lines([response(&nothing), response(&everything)]), @r#"
    {"id":1,"result":{"chunks":[],"nextSeq":1,"exited":false,"exitCode":null,"closed":false,"failure":null,"sandboxDenied":false}}
    {"id":1,"result":{"chunks":[{"seq":1,"stream":"stdout","chunk":"aGVsbG8K"},{"seq":2,"stream":"stderr","chunk":"/w=="},{"seq":3,"stream":"pty","chunk":""}],"nextSeq":6,"exited":true,"exitCode":-1,"closed":true,"failure":"lost","sandboxDenied":true,"endedBy":"lost"}}
    "#);
}

#[test]
fn write() {
    let statuses = [
        WriteStatus::Accepted,
        WriteStatus::UnknownProcess,
        WriteStatus::StdinClosed,
        WriteStatus::Starting,
    ];
    let results = statuses.map(|status| response(&WriteResult { status }));
    insta::assert_snapshot!(lines(results), @r#"
    {"id":1,"result":{"status":"accepted"}}
    {"id":1,"result":{"status":"unknownProcess"}}
    {"id":1,"result":{"status":"stdinClosed"}}
    {"id":1,"result":{"status":"starting"}}
    "#);
}

#[test]
fn control() {
    insta::assert_snapshot!(
        lines([response(&TerminateResult { running: true }), response(&Empty {})]),
        @r#"
        {"id":1,"result":{"running":true}}
        {"id":1,"result":{}}
        "#
    );
}

#[test]
fn list() {
    let entry = |state, pid, exit_code| ProcessEntry {
        process_id: "proc-1".to_owned(),
        pid,
        argv: vec!["ls".to_owned(), "-l".to_owned()],
        cwd: uri("/srv"),
        tty: false,
        started_at_ms: 1_700_000_000_000,
        state,
        exit_code,
        next_seq: 3,
        bytes_out: 10,
        ended_by: exit_code.map(|_| EndedBy::Signal),
        usage: None,
    };
    let processes = vec![
        entry(ProcessState::Starting, None, None),
        entry(ProcessState::Running, Some(7), None),
        entry(ProcessState::Exited, Some(7), Some(0)),
        entry(ProcessState::Closed, Some(7), Some(137)),
    ];
    let json = response(&ListResult { processes }).replace("},{", "},\n{");
    insta::assert_snapshot!(json, @r#"
    {"id":1,"result":{"processes":[{"processId":"proc-1","pid":null,"argv":["ls","-l"],"cwd":"file:///srv","tty":false,"startedAtMs":1700000000000,"state":"starting","exitCode":null,"nextSeq":3,"bytesOut":10},
    {"processId":"proc-1","pid":7,"argv":["ls","-l"],"cwd":"file:///srv","tty":false,"startedAtMs":1700000000000,"state":"running","exitCode":null,"nextSeq":3,"bytesOut":10},
    {"processId":"proc-1","pid":7,"argv":["ls","-l"],"cwd":"file:///srv","tty":false,"startedAtMs":1700000000000,"state":"exited","exitCode":0,"nextSeq":3,"bytesOut":10,"endedBy":"signal"},
    {"processId":"proc-1","pid":7,"argv":["ls","-l"],"cwd":"file:///srv","tty":false,"startedAtMs":1700000000000,"state":"closed","exitCode":137,"nextSeq":3,"bytesOut":10,"endedBy":"signal"}]}}
    "#);
}

#[test]
fn notifications() {
    let process_id = "proc-1".to_owned();
    let output = ProcessOutput {
        process_id: "proc-1".into(),
        seq: 1,
        stream: Stream::Stdout,
        chunk: b"hello\n".as_slice().into(),
    };
    let exited = ProcessExited {
        process_id: process_id.clone(),
        seq: 2,
        exit_code: 0,
        sandbox_denied: Some(false),
        ended_by: Some(EndedBy::CpuLimit),
        usage: Some(ResourceUsage {
            cpu_ms: 1500,
            user_ms: 1000,
            system_ms: 500,
            max_rss_bytes: Some(4096),
            peak_memory_bytes: None,
        }),
    };
    let closed = ProcessClosed { process_id, seq: 3 };
    insta::assert_snapshot!(
        lines([
            notification(PROCESS_OUTPUT, &output),
            notification(PROCESS_EXITED, &exited),
            notification(PROCESS_CLOSED, &closed),
        ]),
        @r#"
        {"method":"process/output","params":{"processId":"proc-1","seq":1,"stream":"stdout","chunk":"aGVsbG8K"}}
        {"method":"process/exited","params":{"processId":"proc-1","seq":2,"exitCode":0,"sandboxDenied":false,"endedBy":"cpuLimit","usage":{"cpuMs":1500,"userMs":1000,"systemMs":500,"maxRssBytes":4096}}}
        {"method":"process/closed","params":{"processId":"proc-1","seq":3}}
        "#
    );
}

#[test]
fn response_ids() {
    let mut out = b"kept ".to_vec();
    encode_response(&mut out, &RequestId::Text("a\"b".to_owned()), &Empty {}).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"kept {"id":"a\"b","result":{}}"#
    );
}

#[test]
fn failed_encoding_leaves_the_buffer_unchanged() {
    // A list can't be a key in JSON.
    let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
    let mut out = b"kept".to_vec();
    assert!(encode_response(&mut out, &RequestId::Integer(1), &unwritable).is_err());
    assert!(encode_notification(&mut out, "m", &unwritable).is_err());
    assert_eq!(out, b"kept");
}

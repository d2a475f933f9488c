//! The dialects whose processes belong to a connection.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outpost_protocol::{
    COMMAND_EXITED, COMMAND_OUTPUT_DELTA, CommandOutput, CommandParams, CommandResult,
    CommandWriteParams, EndedBy, InvalidParams, KillParams, OutputDeltaEncoder, Override,
    PROCESS_EXITED, PROCESS_OUTPUT_DELTA, RequestId, ResizePtyParams, SandboxPolicy, SpawnExited,
    SpawnOutput, SpawnParams, Stream, V0ExecParams, V0ExecResult, V0Exited, V0Output,
    V0TerminateResult, V0WriteParams, V0WriteResult, WriteStdinParams, encode_notification,
    encode_response, names_argv, parse_params,
};
use outpost_types::sandbox::Network;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn raw(params: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(params).unwrap()
}

fn parse<T: DeserializeOwned>(params: &Value) -> Result<T, InvalidParams> {
    parse_params(Some(&raw(params)))
}

#[test]
fn spawn_needs_only_required_members() {
    let params: SpawnParams =
        parse(&json!({"command": ["ls"], "processHandle": "h", "cwd": "/abs"})).unwrap();
    assert_eq!(params.cwd.as_path(), Path::new("/abs"));
    assert_eq!(params.env, BTreeMap::new());
    assert!(!params.tty && !params.stream_stdin && !params.stream_stdout_stderr);
    assert_eq!(params.size, None);
    assert_eq!(params.output_bytes_cap, Override::Unspecified);
    assert_eq!(params.timeout_ms, Override::Unspecified);
    for missing in ["command", "processHandle", "cwd"] {
        let mut params = json!({"command": ["ls"], "processHandle": "h", "cwd": "/abs"});
        params.as_object_mut().unwrap().remove(missing);
        let error = parse::<SpawnParams>(&params).unwrap_err().to_string();
        assert!(error.contains(missing), "{error}");
    }
}

#[test]
fn null_disables_defaults() {
    let params: SpawnParams = parse(&json!({
        "command": ["ls"], "processHandle": "h", "cwd": "/", "outputBytesCap": null,
        "timeoutMs": null, "env": {"A": null, "B": "b"},
    }))
    .unwrap();
    assert_eq!(params.output_bytes_cap, Override::Off);
    assert_eq!(params.output_bytes_cap.or(7), None);
    assert_eq!(params.timeout_ms.or(7), None);
    assert_eq!(Override::Unspecified.or(7), Some(7));
    assert_eq!(Override::Value(3).or(7), Some(3));
    assert_eq!(params.env["A"], None);
    assert_eq!(params.env["B"].as_deref(), Some("b"));
    let again: SpawnParams = parse(&serde_json::to_value(&params).unwrap()).unwrap();
    assert_eq!(again, params);
}

#[test]
fn negative_timeouts_parse_and_relative_paths_fail() {
    let spawn = |changes: Value| {
        let mut params = json!({"command": ["ls"], "processHandle": "h", "cwd": "/"});
        for (name, value) in changes.as_object().unwrap() {
            params[name] = value.clone();
        }
        parse::<SpawnParams>(&params)
    };
    // They have their own error, which contains the number.
    let params = spawn(json!({"timeoutMs": -5})).unwrap();
    assert_eq!(params.timeout_ms, Override::Value(-5));
    for invalid in [
        json!({"cwd": "x/y"}),
        json!({"cwd": ""}),
        json!({"cwd": "file:///x"}),
        json!({"outputBytesCap": -1}),
        json!({"size": [1, 2]}),
        json!({"command": "ls"}),
    ] {
        assert!(spawn(invalid.clone()).is_err(), "{invalid}");
    }
}

#[test]
fn params_of_other_spawn_methods_parse() {
    let params: WriteStdinParams =
        parse(&json!({"processHandle": "h", "deltaBase64": "no base64", "closeStdin": null}))
            .unwrap();
    assert_eq!(params.delta_base64.as_deref(), Some("no base64"));
    assert!(!params.close_stdin);
    let params: ResizePtyParams =
        parse(&json!({"processHandle": "h", "size": {"rows": 0, "cols": 65_535}})).unwrap();
    assert_eq!((params.size.rows, params.size.cols), (0, 65_535));
    assert!(parse::<KillParams>(&json!({"processId": "h"})).is_err());
}

#[test]
fn exec_requires_a_command() {
    let params: CommandParams = parse(&json!({"command": []})).unwrap();
    assert_eq!(params.process_id, None);
    assert_eq!(params.cwd, None);
    assert_eq!((params.timeout_ms, params.output_bytes_cap), (None, None));
    assert!(parse::<CommandParams>(&json!({})).is_err());
    let params: CommandParams = parse(&json!({"command": ["x"], "cwd": "../y"})).unwrap();
    assert_eq!(params.cwd, Some(PathBuf::from("../y")));
    let params: CommandWriteParams = parse(&json!({"processId": "p"})).unwrap();
    assert_eq!((params.delta_base64, params.close_stdin), (None, false));
}

#[test]
fn sandbox_policies_parse() {
    let policy = |policy: Value| {
        parse::<CommandParams>(&json!({"command": ["x"], "sandboxPolicy": policy}))
            .map(|params| params.sandbox_policy)
    };
    assert_eq!(policy(Value::Null).unwrap(), None);
    for (name, expected) in [
        ("dangerFullAccess", SandboxPolicy::DangerFullAccess),
        (
            "readOnly",
            SandboxPolicy::ReadOnly {
                network_access: false,
            },
        ),
        (
            "externalSandbox",
            SandboxPolicy::ExternalSandbox {
                network_access: Network::Restricted,
            },
        ),
        (
            "workspaceWrite",
            SandboxPolicy::WorkspaceWrite {
                writable_roots: Vec::new(),
                network_access: false,
                exclude_tmpdir_env_var: false,
                exclude_slash_tmp: false,
            },
        ),
    ] {
        let read = policy(json!({"type": name, "later": 1})).unwrap().unwrap();
        assert_eq!(read, expected);
        assert_eq!(read.name(), name);
    }
    let external = policy(json!({"type": "externalSandbox", "networkAccess": "enabled"})).unwrap();
    let enabled = Network::Enabled;
    assert_eq!(
        external,
        Some(SandboxPolicy::ExternalSandbox {
            network_access: enabled
        })
    );
    for invalid in [
        json!({"type": "none"}),
        json!({}),
        json!("readOnly"),
        json!(["readOnly"]),
        json!({"type": "workspaceWrite", "writableRoots": ["x"]}),
    ] {
        assert!(policy(invalid.clone()).is_err(), "{invalid}");
    }
}

#[test]
fn argv_identifies_the_first_exec_protocol() {
    for (params, is) in [
        (json!({"argv": ["x"]}), true),
        (json!({"argv": [], "command": null}), true),
        (json!({"argv": 7}), true),
        (json!({"argv": null, "command": ["x"]}), false),
        (json!({"argv": ["x"], "command": ["x"]}), false),
        (json!({"command": ["x"]}), false),
        (json!({}), false),
        (json!(["argv"]), false),
    ] {
        assert_eq!(names_argv(Some(&raw(&params))), is, "{params}");
    }
    assert!(!names_argv(None));
    let params: V0ExecParams = parse(
        &json!({"processId": "1", "argv": ["x"], "cwd": "/", "env": {}, "tty": true,
            "outputBytesCap": 4096, "arg0": null}),
    )
    .unwrap();
    assert_eq!(params.output_bytes_cap, Some(4096));
    assert!(params.tty);
    assert!(parse::<V0WriteParams>(&json!({"processId": "1", "chunk": "!"})).is_err());
}

#[test]
fn results_and_notifications_serialize() {
    let exited = SpawnExited {
        process_handle: "h".to_owned(),
        exit_code: 0,
        stdout: "é\n".to_owned(),
        stdout_cap_reached: false,
        stderr: String::new(),
        stderr_cap_reached: true,
        output_drain_timed_out: false,
        ended_by: Some(EndedBy::Exit),
        usage: None,
    };
    let command = CommandResult {
        exit_code: 124,
        stdout: String::new(),
        stderr: "e".to_owned(),
        stdout_cap_reached: false,
        stderr_cap_reached: false,
    };
    let started = V0ExecResult {
        process_id: "2001".to_owned(),
        pid: 123,
        running: true,
        exit_code: None,
        stdout: None,
        stderr: None,
    };
    let gone = V0Exited {
        process_id: "2001".to_owned(),
        exit_code: 1,
    };
    let lines = [
        notification(PROCESS_EXITED, &exited),
        response(&command),
        response(&started),
        response(&V0WriteResult { accepted: true }),
        response(&V0TerminateResult { running: false }),
        notification(COMMAND_EXITED, &gone),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"method":"process/exited","params":{"processHandle":"h","exitCode":0,"stdout":"é\n","stdoutCapReached":false,"stderr":"","stderrCapReached":true,"outputDrainTimedOut":false,"endedBy":"exit"}}
    {"id":1,"result":{"exitCode":124,"stdout":"","stderr":"e"}}
    {"id":1,"result":{"processId":"2001","pid":123,"running":true,"exitCode":null,"stdout":null,"stderr":null}}
    {"id":1,"result":{"accepted":true}}
    {"id":1,"result":{"running":false}}
    {"method":"command/exec/exited","params":{"processId":"2001","exitCode":1}}
    "#);
}

fn notification(method: &str, params: &impl Serialize) -> String {
    let mut out = Vec::new();
    encode_notification(&mut out, method, params).unwrap();
    String::from_utf8(out).unwrap()
}

fn response(result: &impl Serialize) -> String {
    let mut out = Vec::new();
    encode_response(&mut out, &RequestId::Integer(1), result).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn delta_frames_equal_serde_output(
        id: String,
        stream in prop::sample::select(vec![Stream::Stdout, Stream::Stderr]),
        payload in prop::collection::vec(any::<u8>(), 0..4_000),
        cap_reached: bool,
    ) {
        let spawn = SpawnOutput {
            process_handle: (&id).into(),
            stream,
            delta_base64: (&payload).into(),
            cap_reached,
        };
        let command = CommandOutput {
            process_id: (&id).into(),
            stream,
            delta_base64: (&payload).into(),
            cap_reached,
        };
        let v0 = V0Output { process_id: (&id).into(), stream, chunk: (&payload).into() };
        let cases = [
            (OutputDeltaEncoder::spawn(&id), notification(PROCESS_OUTPUT_DELTA, &spawn)),
            (OutputDeltaEncoder::command(&id), notification(COMMAND_OUTPUT_DELTA, &command)),
            (OutputDeltaEncoder::v0(&id), notification(COMMAND_OUTPUT_DELTA, &v0)),
        ];
        for (frame, by_serde) in cases {
            let mut by_hand = b"kept".to_vec();
            frame.encode(&mut by_hand, stream, &payload, cap_reached);
            prop_assert_eq!(&String::from_utf8_lossy(&by_hand[4..]), &by_serde);
            prop_assert_eq!(frame.encoded_len(stream, payload.len(), cap_reached), by_serde.len());
        }
    }
}

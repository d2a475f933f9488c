//! Parsing of params.

use std::collections::BTreeMap;

use outpost_protocol::{
    Delivery, Empty, EnvPolicy, Inherit, InitializeParams, InvalidParams, Override, PathUri,
    ReadParams, ResizeParams, SandboxPermissions, SessionCloseParams, SessionLeaseParams, Signal,
    SignalParams, StartParams, TerminalSize, TerminateParams, WriteParams, parse_params,
};
use outpost_types::sandbox::{FileSystem, Network};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn parse<T: DeserializeOwned>(params: &Value) -> Result<T, InvalidParams> {
    let raw: Box<RawValue> = serde_json::value::to_raw_value(params).unwrap();
    parse_params(Some(&raw))
}

#[test]
fn absent_params_are_an_empty_object() {
    assert_eq!(parse_params::<Empty>(None).unwrap(), Empty {});
    assert_eq!(
        parse_params::<InitializeParams>(None).unwrap(),
        InitializeParams::default()
    );
}

#[test]
fn initialize_accepts_both_kinds_of_clients() {
    let exec: InitializeParams =
        parse(&json!({"clientName": "x", "resumeSessionId": null})).unwrap();
    assert_eq!(exec.client_name.as_deref(), Some("x"));
    assert_eq!(exec.resume_session_id, None);

    let app: InitializeParams = parse(&json!({
        "clientInfo": {"name": "x", "title": null, "version": "1"},
        "capabilities": {"experimentalApi": true, "unknown": 1},
    }))
    .unwrap();
    assert_eq!(app.client_info.unwrap().name, "x");
    assert!(app.capabilities.unwrap().experimental_api);
}

#[test]
fn initialize_accepts_extensions() {
    let params: InitializeParams = parse(&json!({
        "detachedTtlMs": 5, "sessionLabel": "l", "takeover": true, "delivery": "acked",
        "resumeFrom": {"proc-1": 17},
    }))
    .unwrap();
    assert_eq!(
        params,
        InitializeParams {
            detached_ttl_ms: Override::Value(5),
            session_label: Some("l".to_owned()),
            takeover: true,
            delivery: Some(Delivery::Acked),
            resume_from: BTreeMap::from([("proc-1".to_owned(), 17)]),
            ..InitializeParams::default()
        }
    );
}

#[test]
fn detached_ttl_distinguishes_null_from_absent() {
    for (params, lease) in [
        (json!({}), Override::Unspecified),
        (json!({"detachedTtlMs": null}), Override::Off),
        (json!({"detachedTtlMs": 0}), Override::Value(0)),
    ] {
        let parsed: InitializeParams = parse(&params).unwrap();
        assert_eq!(parsed.detached_ttl_ms, lease);
        let written = serde_json::to_value(&parsed).unwrap();
        assert_eq!(written.get("detachedTtlMs"), params.get("detachedTtlMs"));
    }
}

#[test]
fn start_needs_only_required_members() {
    let params: StartParams =
        parse(&json!({"processId": "p", "argv": ["ls"], "cwd": "file:///"})).unwrap();
    assert_eq!(params.process_id, "p");
    assert_eq!(params.argv, ["ls"]);
    assert_eq!(params.cwd.as_path().to_str(), Some("/"));
    assert!(params.env.is_empty());
    assert!(params.env_policy.is_none() && params.sandbox.is_none() && params.size.is_none());
    assert!(!params.tty && !params.pipe_stdin && !params.enforce_managed_network);
}

#[test]
fn start_accepts_all_members() {
    let params: StartParams = parse(&json!({
        "processId": "p", "argv": ["ls", "-l"], "cwd": "file:///srv", "env": {"A": "b"},
        "envPolicy": {"inherit": "core", "ignoreDefaultExcludes": true, "exclude": ["AWS_*"],
                      "set": {"C": "d"}, "includeOnly": ["*"]},
        "tty": true, "pipeStdin": true, "arg0": "-ls",
        "sandbox": {
            "permissions": {
                "type": "managed", "file_system": {"type": "unrestricted"}, "network": "enabled",
            },
            "cwd": "file:///srv",
        },
        "enforceManagedNetwork": true, "managedNetwork": {"loopbackPorts": [1]},
        "metadata": {"k": "v"}, "size": {"rows": 40, "cols": 120},
        "timeoutMs": 1, "retainBytes": 2, "killGraceMs": 3, "limits": {"processes": 4},
        "network": {"policy": "n", "allow": ["a.test:443"], "deny": ["b.test"], "allowLocalBinding": true},
        "shellSnapshot": {"scopeId": "s", "shell": {"name": "bash", "path": "/bin/bash"}},
    }))
    .unwrap();
    assert_eq!(
        params.env,
        BTreeMap::from([("A".to_owned(), "b".to_owned())])
    );
    assert_eq!(
        params.env_policy,
        Some(EnvPolicy {
            inherit: Inherit::Core,
            ignore_default_excludes: true,
            exclude: vec!["AWS_*".to_owned()],
            set: BTreeMap::from([("C".to_owned(), "d".to_owned())]),
            include_only: vec!["*".to_owned()],
        })
    );
    assert!(params.tty && params.pipe_stdin && params.enforce_managed_network);
    assert_eq!(params.arg0.as_deref(), Some("-ls"));
    let sandbox = params.sandbox.as_ref().unwrap();
    assert_eq!(
        sandbox.permissions,
        SandboxPermissions::Managed {
            file_system: FileSystem::Unrestricted,
            network: Network::Enabled,
        }
    );
    assert_eq!(sandbox.cwd, Some(PathUri::parse("file:///srv").unwrap()));
    let network = params.managed_network.as_ref().unwrap();
    assert_eq!(network.loopback_ports, [1]);
    let network = params.network.as_ref().unwrap();
    assert_eq!(
        (
            network.policy.as_deref(),
            &network.allow[..],
            &network.deny[..]
        ),
        (
            Some("n"),
            &["a.test:443".to_owned()][..],
            &["b.test".to_owned()][..]
        )
    );
    assert!(network.allow_local_binding);
    let snapshot = params.shell_snapshot.as_ref().unwrap();
    assert_eq!(
        (
            &*snapshot.scope_id,
            &*snapshot.shell.name,
            &*snapshot.shell.path
        ),
        ("s", "bash", "/bin/bash")
    );
    assert_eq!(params.metadata.as_ref().unwrap()["k"], "v");
    assert_eq!(
        params.size,
        Some(TerminalSize {
            rows: 40,
            cols: 120
        })
    );
    assert_eq!(
        (params.timeout_ms, params.retain_bytes, params.kill_grace_ms),
        (Some(1), Some(2), Some(3))
    );
    let again: StartParams = parse(&serde_json::to_value(&params).unwrap()).unwrap();
    assert_eq!(again, params);
}

#[test]
fn null_is_allowed_exactly_for_optional_members() {
    fn check<T: DeserializeOwned>(required: &Value, optional: &[&str]) {
        let required = required.as_object().unwrap();
        parse::<T>(&Value::Object(required.clone())).unwrap();
        for name in optional {
            let mut params = required.clone();
            params.insert((*name).to_owned(), Value::Null);
            parse::<T>(&params.into()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for name in required.keys() {
            let mut params = required.clone();
            params.insert(name.clone(), Value::Null);
            assert!(parse::<T>(&params.clone().into()).is_err(), "null {name}");
            params.remove(name);
            assert!(parse::<T>(&params.into()).is_err(), "no {name}");
        }
    }
    let process = json!({"processId": "p"});
    check::<InitializeParams>(
        &json!({}),
        &[
            "clientName",
            "clientInfo",
            "capabilities",
            "resumeSessionId",
            "detachedTtlMs",
            "sessionLabel",
            "takeover",
            "delivery",
            "resumeFrom",
        ],
    );
    check::<StartParams>(
        &json!({"processId": "p", "argv": [], "cwd": "file:///"}),
        &[
            "env",
            "envPolicy",
            "tty",
            "pipeStdin",
            "arg0",
            "sandbox",
            "enforceManagedNetwork",
            "managedNetwork",
            "networkProxy",
            "network",
            "metadata",
            "size",
            "timeoutMs",
            "retainBytes",
            "killGraceMs",
            "shellSnapshot",
        ],
    );
    check::<EnvPolicy>(
        &json!({}),
        &[
            "inherit",
            "ignoreDefaultExcludes",
            "exclude",
            "set",
            "includeOnly",
        ],
    );
    check::<ReadParams>(&process, &["afterSeq", "maxBytes", "waitMs", "sessionId"]);
    check::<WriteParams>(&process, &["chunk", "writeId", "closeStdin"]);
    check::<SignalParams>(&json!({"processId": "p", "signal": "kill"}), &["sessionId"]);
    check::<SessionCloseParams>(&json!({}), &["sessionId"]);
    // Here `null` isn't the same as nothing.
    check::<SessionLeaseParams>(&json!({}), &[]);
    check::<TerminateParams>(&process, &["graceMs", "tree", "sessionId"]);
    check::<ResizeParams>(
        &json!({"processId": "p", "size": {"rows": 1, "cols": 1}}),
        &[],
    );
}

#[test]
fn env_policy_inherits_all_by_default() {
    assert_eq!(
        parse::<EnvPolicy>(&json!({})).unwrap().inherit,
        Inherit::All
    );
    assert_eq!(
        parse::<EnvPolicy>(&json!({"inherit": "none"}))
            .unwrap()
            .inherit,
        Inherit::None
    );
}

#[test]
fn signals() {
    let names = [
        ("interrupt", Signal::Interrupt),
        ("terminate", Signal::Terminate),
        ("kill", Signal::Kill),
        ("hangup", Signal::Hangup),
        ("quit", Signal::Quit),
        ("stop", Signal::Stop),
        ("continue", Signal::Continue),
        ("user1", Signal::User1),
        ("user2", Signal::User2),
        ("windowChange", Signal::WindowChange),
    ];
    for (name, signal) in names {
        let params: SignalParams = parse(&json!({"processId": "p", "signal": name})).unwrap();
        assert_eq!(params.signal, signal);
        assert_eq!(serde_json::to_value(signal).unwrap(), name);
    }
}

/// The texts are serde's, and pinned because clients see them.
#[test]
fn errors_describe_the_cause() {
    let start = |name: &str, value: Value| {
        let mut params = json!({"processId": "p", "argv": [], "cwd": "file:///"});
        params[name] = value;
        parse::<StartParams>(&params).unwrap_err().to_string()
    };
    let lines = [
        parse::<StartParams>(&json!({})).unwrap_err().to_string(),
        parse::<StartParams>(&json!([])).unwrap_err().to_string(),
        parse::<Empty>(&json!("x")).unwrap_err().to_string(),
        start("argv", json!("ls")),
        start("cwd", json!("/srv")),
        start("cwd", json!(7)),
        start("env", json!({"A": null})),
        start("tty", json!("yes")),
        start("size", json!([24, 80])),
        start("size", json!({"rows": 70000, "cols": 80})),
        start("timeoutMs", json!(-1)),
        start("sandbox", json!([])),
        start("sandbox", json!({})),
        start("sandbox", json!({"permissions": {"type": "other"}})),
        start("sandbox", json!({"permissions": ["managed"]})),
        start("envPolicy", json!({"inherit": "some"})),
        parse::<WriteParams>(&json!({"processId": "p", "chunk": "?"}))
            .unwrap_err()
            .to_string(),
        parse::<WriteParams>(&json!({"processId": "p", "chunk": [1]}))
            .unwrap_err()
            .to_string(),
        parse::<SignalParams>(&json!({"processId": "p", "signal": "SIGINT"}))
            .unwrap_err()
            .to_string(),
        parse::<InitializeParams>(&json!({"delivery": "pull"}))
            .unwrap_err()
            .to_string(),
        parse::<InitializeParams>(&json!({"detachedTtlMs": "1"}))
            .unwrap_err()
            .to_string(),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    missing field `processId`
    invalid type: sequence, expected an object
    invalid type: string "x", expected an object
    invalid type: string "ls", expected a sequence
    invalid URI: relative URL without a base
    invalid type: number, expected a string
    invalid type: null, expected a string
    invalid type: string "yes", expected a boolean
    invalid type: sequence, expected an object
    invalid number
    invalid number
    invalid type: sequence, expected an object
    missing field `permissions`
    unknown variant `other`, expected one of `managed`, `disabled`, `external`
    invalid type: sequence, expected an object
    unknown variant `some`, expected one of `all`, `core`, `none`
    Invalid symbol 63, offset 0.
    invalid type: sequence, expected a string
    unknown variant `SIGINT`, expected one of `interrupt`, `terminate`, `kill`, `hangup`, `quit`, `stop`, `continue`, `user1`, `user2`, `windowChange`
    unknown variant `pull`, expected `push` or `acked`
    invalid type: string "1", expected u64
    "#);
}

#[test]
fn errors_have_the_path_of_the_member() {
    let start = json!({"processId": "p", "argv": ["a"], "cwd": "file:///"});
    let with = |name: &str, value: Value| {
        let mut params = start.clone();
        params[name] = value;
        parse::<StartParams>(&params).unwrap_err()
    };
    let error = with("timeoutMs", json!("soon"));
    assert_eq!(error.member(), Some("timeoutMs"));
    let said = error.to_string();
    assert_eq!(said, "invalid type: string \"soon\", expected u64");
    assert_eq!(with("argv", json!(["a", 1])).member(), Some("argv[1]"));
    assert_eq!(with("env", json!({"A": 1})).member(), Some("env.A"));
    let size = json!({"rows": 1, "cols": -1});
    assert_eq!(with("size", size).member(), Some("size.cols"));
    assert_eq!(with("cwd", json!("relative")).member(), Some("cwd"));

    // The text for a missing member already contains its name.
    let missing = parse::<ReadParams>(&json!({})).unwrap_err();
    assert_eq!(missing.member(), None);
    assert!(missing.to_string().starts_with("missing field `processId`"));
    assert_eq!(parse::<ReadParams>(&json!([])).unwrap_err().member(), None);
}

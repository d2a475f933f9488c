//! A recorded session of a released client and its server.

use outpost_protocol::{
    EnvironmentConfigParams, FsGetMetadataParams, FsWatchMissingParams, Incoming, InitializeParams,
    Method, PROCESS_CLOSED, PROCESS_EXITED, PROCESS_OUTPUT, ProcessClosed, ProcessExited,
    ProcessOutput, RequestId, SandboxPermissions, StartParams, StartResult, TerminateParams,
    TerminateResult, parse_params,
};
use serde_json::Value;

struct Line {
    from_client: bool,
    message: Value,
}

fn lines() -> Vec<Line> {
    include_str!("../data/coding-agent.jsonl")
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            Line {
                from_client: line["from"] == "client",
                message: line["message"].clone(),
            }
        })
        .collect()
}

#[test]
fn client_messages_parse() {
    let mut seen = Vec::new();
    for line in lines().iter().filter(|line| line.from_client) {
        let text = line.message.to_string();
        let incoming = Incoming::parse(text.as_bytes()).unwrap();
        let (method, params) = match incoming {
            Incoming::Request {
                id,
                method,
                params,
                trace,
                members,
            } => {
                members.check(&method, None, false).unwrap();
                assert_eq!(serde_json::to_value(&id).unwrap(), line.message["id"]);
                assert_eq!(trace, None);
                (method, params)
            }
            Incoming::Notification {
                method,
                params,
                members,
            } => {
                members.check(&method, None, false).unwrap();
                assert_eq!(method, "initialized");
                (method, params)
            }
            other => panic!("{other:?}"),
        };
        match Method::from_name(&method) {
            Some(Method::Initialize) => {
                let params: InitializeParams = parse_params(params).unwrap();
                assert_eq!(params.client_name.as_deref(), Some("codex-environment"));
            }
            Some(Method::ProcessStart) => {
                let params: StartParams = parse_params(params).unwrap();
                assert_eq!(params.cwd.to_string(), "file:///srv/project");
                assert_eq!(params.argv[..2], ["/bin/bash", "-lc"]);
                assert_eq!(params.env["TERM"], "dumb");
                assert_eq!(params.env_policy.unwrap().exclude.len(), 4);
                let sandbox = params.sandbox.unwrap();
                assert!(matches!(
                    sandbox.permissions,
                    SandboxPermissions::Managed { .. }
                ));
                let mut sent = line.message["params"]["sandbox"].clone();
                let sent = sent.as_object_mut().unwrap();
                // This method is not served.
                sent.remove("windowsSandboxProxySettingsMode").unwrap();
                let understood = serde_json::to_value(sandbox).unwrap();
                assert_eq!(understood, Value::from(sent.clone()));
            }
            Some(Method::ProcessTerminate) => {
                let params: TerminateParams = parse_params(params).unwrap();
                assert!(params.grace_ms.is_none() && !params.tree);
            }
            Some(Method::FsGetMetadata) => {
                let params: FsGetMetadataParams = parse_params(params).unwrap();
                assert!(params.path.as_path().is_absolute() && params.symlinks.are_followed());
            }
            Some(Method::EnvironmentConfigRead) => {
                let params: EnvironmentConfigParams = parse_params(params).unwrap();
                assert_eq!(params.config_paths, [["mcp_servers"]]);
            }
            Some(Method::FsWatchMissing) => {
                let params: FsWatchMissingParams = parse_params(params).unwrap();
                assert!(!params.missing.is_empty());
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        seen.push(method.into_owned());
    }
    seen.sort_unstable();
    seen.dedup();
    insta::assert_snapshot!(seen.join("\n"), @r"
    environmentConfig/read
    fs/getMetadata
    fs/watchMissing
    initialize
    initialized
    process/start
    process/terminate
    ");
}

#[test]
fn server_messages_round_trip() {
    fn same<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) {
        let typed: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), *value);
    }
    let lines = lines();
    let method_of = |id: &Value| {
        lines
            .iter()
            .find(|line| line.from_client && line.message["id"] == *id)
            .and_then(|line| line.message["method"].as_str())
            .and_then(Method::from_name)
    };
    let mut compared = 0;
    for Line { message, .. } in lines.iter().filter(|line| !line.from_client) {
        match (message["method"].as_str(), method_of(&message["id"])) {
            (Some(PROCESS_OUTPUT), _) => same::<ProcessOutput<'static>>(&message["params"]),
            (Some(PROCESS_EXITED), _) => same::<ProcessExited>(&message["params"]),
            (Some(PROCESS_CLOSED), _) => same::<ProcessClosed>(&message["params"]),
            (None, Some(Method::ProcessStart)) => same::<StartResult>(&message["result"]),
            (None, Some(Method::ProcessTerminate)) => same::<TerminateResult>(&message["result"]),
            _ => continue,
        }
        compared += 1;
    }
    assert_eq!(compared, 25);
}

#[test]
fn server_messages_are_distinguished() {
    let (mut responses, mut errors) = (0, 0);
    for Line { message, .. } in lines().iter().filter(|line| !line.from_client) {
        let text = message.to_string();
        match Incoming::parse(text.as_bytes()).unwrap() {
            Incoming::Response {
                id: RequestId::Integer(_),
                ..
            } => responses += 1,
            Incoming::Error {
                id: Some(RequestId::Integer(_)),
            } => errors += 1,
            Incoming::Notification { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((responses, errors), (11, 11));
}

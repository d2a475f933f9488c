//! The list of tools, their schemas and annotations.

use rmcp::{
    ClientLifecycleMode,
    model::{ErrorCode, ProtocolVersion},
    service::ServiceError,
};
use serde_json::{Value, json};

use super::harness::{TestOptions, TestSession};

#[tokio::test]
async fn all_protocol_versions_get_the_same_tools() {
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let newest = *version == ProtocolVersion::V_2026_07_28;
        let lifecycle = if newest {
            ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            }
        } else {
            ClientLifecycleMode::Initialize
        };
        let options = TestOptions {
            lifecycle: Some(lifecycle),
            version: (!newest).then(|| version.clone()),
            ..TestOptions::default()
        };
        let session = TestSession::local(options).await;
        let info = session.client.peer_info().expect("server info");
        let instructions = info.instructions.clone().unwrap_or_default();
        assert!(instructions.contains("run_command"), "{instructions}");
        let directory = session.directory.path().display().to_string();
        assert!(instructions.contains(&directory), "{instructions}");
        let tools = session.client.list_all_tools().await.expect("a list");
        assert_eq!(tools.len(), 13);
        let result = session
            .call("run_command", json!({"command": "echo $((6 * 7))"}))
            .await;
        assert_eq!(result["stdout"], "42\n", "{version}");
        let message = session.call_failing("run_command", json!({})).await;
        assert!(message.contains("command"), "{message}");
        session.end().await;
    }
}

#[tokio::test]
async fn tools_have_schemas_and_annotations() {
    let session = TestSession::local(TestOptions::default()).await;
    let tools = session.client.list_all_tools().await.expect("a list");
    let mut summary = String::new();
    for tool in &tools {
        let annotations = tool.annotations.as_ref().expect("annotations");
        let result = |schema: &serde_json::Map<String, Value>, required: bool| {
            let needed = schema.get("required").cloned().unwrap_or(json!([]));
            let needed = needed.as_array().unwrap().clone();
            let all = schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            let of = all
                .keys()
                .filter(|name| needed.contains(&json!(name)) == required);
            of.cloned().collect::<Vec<_>>().join(" ")
        };
        let kind = match (
            annotations.read_only_hint,
            annotations.destructive_hint,
            annotations.idempotent_hint,
        ) {
            (Some(true), ..) => "read-only",
            (_, Some(true), Some(true)) => "destructive, idempotent",
            (_, Some(true), _) if annotations.open_world_hint == Some(false) => "destructive",
            (_, Some(true), _) => "open world",
            (_, Some(false), Some(true)) => "idempotent",
            other => panic!("{other:?}"),
        };
        let input = &tool.input_schema;
        assert_eq!(input["additionalProperties"], false, "{}", tool.name);
        for (name, property) in input["properties"].as_object().cloned().unwrap_or_default() {
            assert!(property["description"].is_string(), "{}: {name}", tool.name);
            assert!(
                property["type"].is_string(),
                "{}: {name}: {property}",
                tool.name
            );
        }
        let text = Value::Object((**input).clone()).to_string();
        assert!(!text.contains("null") && !text.contains("$ref"), "{text}");
        let output = tool.output_schema.as_ref().expect("a schema");
        assert_eq!(output["type"], "object", "{}", tool.name);
        summary.push_str(&format!(
            "{} ({kind}): {} [{}]\n",
            tool.name,
            result(input, true),
            result(input, false),
        ));
    }
    insta::assert_snapshot!(summary, @r"
    run_command (open world):  [argv command cwd env max_output_bytes merge_stderr stdin timeout_ms]
    start_process (open world):  [argv cols command cwd env max_output_bytes rows tty wait_ms]
    read_output (read-only): process_id [cursor max_output_bytes stream wait_for wait_ms]
    write_input (open world): process_id [end_input text]
    send_signal (destructive): process_id signal []
    resize_terminal (idempotent): cols process_id rows []
    stop_process (destructive, idempotent): process_id [grace_ms]
    list_processes (read-only):  []
    read_file (read-only): path [byte_offset max_bytes max_lines start_line]
    write_file (destructive, idempotent): content path [encoding if_exists]
    edit_file (destructive): new_text old_text path [replace_all]
    list_directory (read-only):  [depth include_hidden max_entries path sizes skip_entries]
    search_files (read-only):  [context_lines files_only glob ignore_case include_hidden include_ignored literal max_matches path pattern]
    ");
    session.end().await;
}

#[tokio::test]
async fn invalid_arguments_are_a_protocol_error() {
    let session = TestSession::local(TestOptions::default()).await;
    for (tool, arguments, text) in [
        (
            "run_command",
            json!({"command": 1}),
            "invalid type: integer `1`",
        ),
        (
            "run_command",
            json!({"comand": "ls"}),
            "unknown field `comand`",
        ),
        ("read_output", json!({}), "missing field `process_id`"),
        (
            "read_output",
            json!({"process_id": "x", "cursor": -1}),
            "invalid value",
        ),
        (
            "send_signal",
            json!({"process_id": "x", "signal": "NOPE"}),
            "unknown variant `NOPE`",
        ),
        (
            "run_command",
            json!({"command": "a", "max_output_bytes": 10_000_000}),
            "`max_output_bytes` is 10000000, but must be from 100 to 200000",
        ),
        (
            "run_command",
            json!({"command": "a", "timeout_ms": 0}),
            "`timeout_ms` is 0, but must be from 1",
        ),
        (
            "resize_terminal",
            json!({"process_id": "x", "rows": 0, "cols": 1}),
            "`rows` is 0, but must be from 1 to 65535",
        ),
        (
            "start_process",
            json!({"command": "a", "rows": 70_000}),
            "`rows` is 70000",
        ),
        (
            "read_file",
            json!({"path": "x", "start_line": 0}),
            "`start_line` is 0",
        ),
        (
            "read_file",
            json!({"path": "x", "max_bytes": 3}),
            "`max_bytes` is 3",
        ),
        (
            "no_such_tool",
            json!({}),
            "there is no tool \"no_such_tool\"",
        ),
    ] {
        let error = session.try_call(tool, arguments).await.unwrap_err();
        let ServiceError::McpError(error) = error else {
            panic!("{error:?}")
        };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains(text), "{}", error.message);
    }
    // Some models send null for arguments that they don't need.
    let nulls =
        json!({"command": "echo hi", "argv": null, "cwd": null, "env": null, "stdin": null});
    assert_eq!(session.call("run_command", nulls).await["stdout"], "hi\n");
    session.end().await;
}

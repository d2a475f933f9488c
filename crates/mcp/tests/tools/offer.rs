//! What is offered, to clients of every revision.

use rmcp::{
    ClientLifecycleMode,
    model::{ErrorCode, ProtocolVersion},
    service::ServiceError,
};
use serde_json::{Value, json};

use crate::bench::{Bench, Wanted};

#[tokio::test]
async fn every_revision_gets_the_same_tools() {
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let newest = *version == ProtocolVersion::V_2026_07_28;
        let lifecycle = match newest {
            true => ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            },
            false => ClientLifecycleMode::Initialize,
        };
        let wanted = Wanted {
            lifecycle: Some(lifecycle),
            version: (!newest).then(|| version.clone()),
            ..Wanted::default()
        };
        let bench = Bench::here(wanted).await;
        let about = bench.client.peer_info().expect("it says who it is");
        let instructions = about.instructions.clone().unwrap_or_default();
        assert!(instructions.contains("run_command"), "{instructions}");
        let folder = bench.folder.path().display().to_string();
        assert!(instructions.contains(&folder), "{instructions}");
        let tools = bench.client.list_all_tools().await.expect("a list");
        assert_eq!(tools.len(), 13);
        let members = bench
            .call("run_command", json!({"command": "echo $((6 * 7))"}))
            .await;
        assert_eq!(members["stdout"], "42\n", "{version}");
        let said = bench.refused("run_command", json!({})).await;
        assert!(said.contains("command"), "{said}");
        bench.end().await;
    }
}

#[tokio::test]
async fn tools_say_what_they_are() {
    let bench = Bench::here(Wanted::default()).await;
    let tools = bench.client.list_all_tools().await.expect("a list");
    let mut summary = String::new();
    for tool in &tools {
        let hints = tool.annotations.as_ref().expect("hints");
        let members = |schema: &serde_json::Map<String, Value>, required: bool| {
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
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
        ) {
            (Some(true), ..) => "looks",
            (_, Some(true), Some(true)) => "replaces",
            (_, Some(true), _) if hints.open_world_hint == Some(false) => "changes",
            (_, Some(true), _) => "anything",
            (_, Some(false), Some(true)) => "sets",
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
        let answer = tool.output_schema.as_ref().expect("a schema");
        assert_eq!(answer["type"], "object", "{}", tool.name);
        summary.push_str(&format!(
            "{} ({kind}): {} [{}]\n",
            tool.name,
            members(input, true),
            members(input, false),
        ));
    }
    insta::assert_snapshot!(summary, @r"
    run_command (anything):  [argv command cwd env max_output_bytes merge_stderr stdin timeout_ms]
    start_process (anything):  [argv cols command cwd env max_output_bytes rows tty wait_ms]
    read_output (looks): process_id [cursor max_output_bytes stream wait_for wait_ms]
    write_input (anything): process_id [end_input text]
    send_signal (changes): process_id signal []
    resize_terminal (sets): cols process_id rows []
    stop_process (replaces): process_id [grace_ms]
    list_processes (looks):  []
    read_file (looks): path [byte_offset max_bytes max_lines start_line]
    write_file (replaces): content path [encoding if_exists]
    edit_file (changes): new_text old_text path [replace_all]
    list_directory (looks):  [depth include_hidden max_entries path sizes skip_entries]
    search_files (looks):  [context_lines files_only glob ignore_case include_hidden include_ignored literal max_matches path pattern]
    ");
    bench.end().await;
}

#[tokio::test]
async fn what_does_not_fit_the_schema_is_an_error_of_the_protocol() {
    let bench = Bench::here(Wanted::default()).await;
    for (tool, arguments, words) in [
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
            "`max_output_bytes` is 10000000, and can be from 100 to 200000",
        ),
        (
            "run_command",
            json!({"command": "a", "timeout_ms": 0}),
            "`timeout_ms` is 0, and can be from 1",
        ),
        (
            "resize_terminal",
            json!({"process_id": "x", "rows": 0, "cols": 1}),
            "`rows` is 0, and can be from 1 to 65535",
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
        let error = bench.try_call(tool, arguments).await.unwrap_err();
        let ServiceError::McpError(error) = error else {
            panic!("{error:?}")
        };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains(words), "{}", error.message);
    }
    // A null is as good as nothing: some models say it for what they don't need.
    let nulls =
        json!({"command": "echo hi", "argv": null, "cwd": null, "env": null, "stdin": null});
    assert_eq!(bench.call("run_command", nulls).await["stdout"], "hi\n");
    bench.end().await;
}

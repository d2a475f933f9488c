//! Compares the JSON Schema with real messages.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use outpost_protocol::schema::{BUNDLE, documents, file_name};
use outpost_protocol::{Method, NETWORK_POLICY_REQUEST, NOTIFICATIONS};
use serde_json::{Value, json};

/// The names of all methods and notifications.
fn names() -> impl Iterator<Item = &'static str> {
    let methods = Method::ALL.into_iter().map(Method::name);
    methods.chain(NOTIFICATIONS).chain([NETWORK_POLICY_REQUEST])
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error} in {schema:#}"))
}

/// The schema of the params or result in a document.
fn part(document: &Value, part: &str) -> Validator {
    let mut schema = document.clone();
    for word in ["type", "properties", "required"] {
        schema.as_object_mut().unwrap().remove(word);
    }
    schema["$ref"] = json!(format!("#/$defs/{part}"));
    validator(&schema)
}

#[track_caller]
fn accepts(validator: &Validator, value: &Value) {
    let errors: Vec<_> = validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{value}: {errors:?}");
}

#[test]
fn methods_and_notifications_have_documents() {
    let documents = documents();
    for name in names() {
        let file = file_name(name, None);
        let document = documents
            .get(&file)
            .unwrap_or_else(|| panic!("no schema for {name}"));
        assert_eq!(document["properties"]["method"]["const"], name);
        assert_eq!(document["$id"], file);
        assert!(document["$defs"]["params"].is_object(), "{name}");
    }
    let known: Vec<_> = names().collect();
    for (file, document) in &documents {
        let title = document["title"].as_str().unwrap();
        assert!(
            file == BUNDLE || known.contains(&title),
            "{file} is in no table"
        );
    }
}

#[test]
fn documents_are_schemas_and_in_the_bundle() {
    let documents = documents();
    for document in documents.values() {
        jsonschema::meta::validate(document).unwrap();
        validator(document);
    }
    let inside = documents[BUNDLE]["$defs"].as_object().unwrap();
    assert_eq!(inside.len(), documents.len() - 1);
    for (file, document) in inside {
        assert_eq!(document, &documents[file]);
    }
}

#[test]
fn output_is_deterministic() {
    let text = |documents: &BTreeMap<String, Value>| serde_json::to_string(documents).unwrap();
    assert_eq!(text(&documents()), text(&documents()));
}

#[test]
fn protocol_page_mentions_all_names() {
    let page = include_str!("../../../../docs/protocol.md");
    for name in names() {
        let has = |start: &str| page.lines().any(|line| line == format!("{start} {name}"));
        let chapter = has("##") || has("###") || has("####");
        let row = page.contains(&format!("| `{name}` |"));
        assert!(
            chapter || row,
            "docs/protocol.md has no chapter about {name}"
        );
        let said = page.contains(&format!("\"method\":\"{name}\""));
        assert!(said, "docs/protocol.md shows no exchange with {name}");
    }
}

/// The names of all members of all objects in a schema.
fn members(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(words) => {
            for (word, inner) in words {
                if let ("properties", Some(properties)) = (word.as_str(), inner.as_object()) {
                    found.extend(properties.keys().cloned());
                }
                members(inner, found);
            }
        }
        Value::Array(schemas) => {
            for schema in schemas {
                members(schema, found);
            }
        }
        _ => {}
    }
}

#[test]
fn protocol_page_mentions_all_members() {
    let page = include_str!("../../../../docs/protocol.md");
    let words: BTreeSet<&str> = page
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for (file, document) in documents() {
        let mut names = Vec::new();
        members(&document, &mut names);
        for name in names {
            assert!(
                words.contains(name.as_str()),
                "docs/protocol.md says nothing about {name} of {file}"
            );
        }
    }
}

#[test]
fn recorded_requests_are_valid() {
    let documents = documents();
    let bundle = validator(&documents[BUNDLE]);
    let mut checked = 0;
    for line in include_str!("../data/coding-agent.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["message"];
        let Some(document) = message["method"]
            .as_str()
            .and_then(|method| documents.get(&file_name(method, None)))
        else {
            continue;
        };
        accepts(&validator(document), message);
        accepts(&bundle, message);
        checked += 1;
    }
    assert!(
        checked > 5,
        "only {checked} messages were of a method we have"
    );
}

#[test]
fn examples_of_the_protocol_page_are_valid() {
    let documents = documents();
    // A name usually has one document.
    let meanings = |name: &str| -> Vec<&Value> {
        let all = documents.values();
        all.filter(|document| document["title"] == name).collect()
    };
    let mut asked = BTreeMap::new();
    let mut checked = [0, 0];
    for line in include_str!("../../../../docs/protocol.md").lines() {
        let Some((arrow, text)) = line.split_at_checked("→ ".len()) else {
            continue;
        };
        // Abbreviated examples are no JSON.
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let id = message["id"].to_string();
        match (arrow, message["method"].as_str()) {
            ("→ ", Some(_)) => {
                asked.insert(id, message);
            }
            ("← ", Some(name)) => {
                let mut meanings = meanings(name).into_iter();
                assert!(
                    meanings.any(|document| validator(document).is_valid(&message)),
                    "{message}"
                );
                checked[0] += 1;
            }
            ("← ", None) => {
                // Only successful requests have to be valid.
                let (Some(request), Some(result)) = (asked.get(&id), message.get("result")) else {
                    continue;
                };
                let mut meanings = meanings(request["method"].as_str().unwrap()).into_iter();
                assert!(
                    meanings.any(|document| validator(document).is_valid(request)
                        && part(document, "result").is_valid(result)),
                    "{request} {message}"
                );
                checked[1] += 1;
            }
            _ => {}
        }
    }
    assert!(checked.iter().all(|count| *count > 10), "{checked:?}");
}

#[test]
fn invalid_messages_are_rejected() {
    let documents = documents();
    let wrong = [
        json!({"id": 1, "method": "process/start"}),
        json!({"id": 1, "method": "process/start", "params": {"processId": "p", "argv": "ls", "cwd": "file:///"}}),
        json!({"id": 1, "method": "process/start", "params": {"processId": "p", "argv": [], "cwd": "/srv"}}),
        json!({"id": 1.5, "method": "process/list"}),
        json!({"method": "process/list"}),
        json!({"id": 1, "method": "process/read", "params": {"processId": "p", "waitMs": -1}}),
        json!({"id": 1, "method": "process/signal", "params": {"processId": "p", "signal": "KILL"}}),
        json!({"id": 1, "method": "initialize", "params": {"detachedTtlMs": "1s"}}),
        json!({"id": 1, "method": "config/read", "params": {"includeLayers": 1}}),
        json!({"id": 1, "method": "process/spawn", "params": {"command": ["a"], "processHandle": "p", "cwd": "a/b"}}),
        json!({"id": 1, "method": "process/spawn", "params": {"command": ["a"], "processHandle": "p", "cwd": "/", "timeoutMs": "1s"}}),
        json!({"id": 1, "method": "command/exec", "params": {"processId": "p"}}),
        json!({"id": 1, "method": "command/exec", "params": {"command": ["a"], "sandboxPolicy": {"type": "none"}}}),
        json!({"id": 1, "method": "command/exec", "params": {"processId": "p", "argv": ["a"]}}),
        json!({"method": "command/exec/outputDelta", "params": {"processId": "p", "stream": "stdout"}}),
        json!({"method": "process/exited", "params": {"processHandle": "p", "exitCode": 0}}),
        json!({"id": 1, "method": "no/such"}),
        // Params that decode but that the server rejects.
        json!({"id": 1, "method": "process/start", "params": {"processId": "p", "argv": [], "cwd": "file:///"}}),
        json!({"id": 1, "method": "process/start", "params": {"processId": "", "argv": ["a"], "cwd": "file:///"}}),
        json!({"id": 1, "method": "process/resize", "params": {"processId": "p", "size": {"rows": 0, "cols": 80}}}),
        json!({"id": 1, "method": "process/write", "params": {"processId": "p", "chunk": "", "writeId": ""}}),
        json!({"id": 1, "method": "process/spawn", "params": {"command": [], "processHandle": "p", "cwd": "/"}}),
        json!({"id": 1, "method": "process/spawn", "params": {"command": ["a"], "processHandle": "", "cwd": "/"}}),
        json!({"id": 1, "method": "process/spawn", "params": {"command": ["a"], "processHandle": "p", "cwd": "/", "timeoutMs": -1}}),
        json!({"id": 1, "method": "command/exec", "params": {"command": []}}),
        json!({"id": 1, "method": "command/exec", "params": {"command": ["a"], "timeoutMs": -1}}),
    ];
    let bundle = validator(&documents[BUNDLE]);
    for message in wrong {
        assert!(!bundle.is_valid(&message), "{message}");
    }
}

#[test]
fn null_is_valid_for_optional_members() {
    let documents = documents();
    let bundle = validator(&documents[BUNDLE]);
    let about = json!({"processId": "p", "argv": ["a"], "cwd": "file:///"});
    for name in [
        "env",
        "envPolicy",
        "tty",
        "arg0",
        "sandbox",
        "size",
        "timeoutMs",
    ] {
        let mut params = about.clone();
        params[name] = Value::Null;
        accepts(
            &bundle,
            &json!({"id": 1, "method": "process/start", "params": params}),
        );
    }
    // `null` means off in one dialect, and absent in the other.
    for message in [
        json!({"id": 1, "method": "process/spawn", "params": {
            "command": ["a"], "processHandle": "p", "cwd": "/", "env": {"A": null},
            "outputBytesCap": null, "timeoutMs": null, "size": null,
        }}),
        json!({"id": 1, "method": "command/exec", "params": {
            "command": ["a"], "processId": null, "cwd": null, "env": null,
            "outputBytesCap": null, "timeoutMs": null, "sandboxPolicy": null,
        }}),
        json!({"id": 1, "method": "command/exec", "params": {
            "processId": "p", "argv": ["a"], "cwd": "/", "outputBytesCap": null, "arg0": null,
        }}),
    ] {
        accepts(&bundle, &message);
    }
    for name in ["processId", "argv", "cwd"] {
        let mut params = about.clone();
        params[name] = Value::Null;
        let message = json!({"id": 1, "method": "process/start", "params": params});
        assert!(!bundle.is_valid(&message), "{name}");
    }
    accepts(
        &bundle,
        &json!({"id": "x", "method": "session/close", "params": null, "trace": null}),
    );
}

#[test]
fn results_require_all_written_members() {
    let documents = documents();
    let result = part(&documents["process-read.json"], "result");
    let whole = json!({
        "chunks": [], "nextSeq": 1, "exited": false, "exitCode": null, "closed": false,
        "failure": null, "sandboxDenied": false,
    });
    accepts(&result, &whole);
    for name in whole.as_object().unwrap().keys() {
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(name);
        assert!(!result.is_valid(&less), "without {name}");
    }
}

//! Schema documents: one per method and notification, and one with all.

use std::collections::BTreeMap;

use schemars::{
    JsonSchema, SchemaGenerator, consts::meta_schemas::DRAFT2020_12, generate::SchemaSettings,
};
use serde_json::{Map, Value, json};

use super::{
    absent::NullIsAbsent,
    table::{Describe, Notification, Request, Sender, notifications, requests},
};
use crate::{Method, RequestId, TraceContext};

/// The name of the document that contains all others.
pub const BUNDLE: &str = "outpost.json";

/// All documents by file name. The result is deterministic.
pub fn documents() -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    for method in Method::ALL {
        for request in requests(method) {
            let name = file_name(method.name(), request.variant);
            documents.insert(
                name.clone(),
                request_document(&name, method.name(), &request),
            );
        }
    }
    for notification in notifications() {
        let name = file_name(notification.name, notification.variant);
        documents.insert(name.clone(), notification_document(&name, &notification));
    }
    let bundle = bundle(&documents);
    documents.insert(BUNDLE.to_owned(), bundle);
    documents
}

/// The file name of a method or notification.
pub fn file_name(method: &str, variant: Option<&str>) -> String {
    let method = method.replace('/', "-");
    match variant {
        None => format!("{method}.json"),
        Some(variant) => format!("{method}.{variant}.json"),
    }
}

fn request_document(file: &str, method: &str, request: &Request) -> Value {
    let mut defs = Map::new();
    let params = described(&mut defs, "params", Direction::ToServer, request.params);
    described(&mut defs, "result", Direction::ToClient, request.result);
    let id = described(&mut defs, "id", Direction::ToServer, describe::<RequestId>);
    let trace = described(
        &mut defs,
        "trace",
        Direction::ToServer,
        describe::<TraceContext>,
    );
    let mut required = vec!["id", "method"];
    if has_required(&defs["params"]) {
        required.push("params");
    }
    json!({
        "$schema": DRAFT2020_12,
        "$id": file,
        "title": method,
        "description": format!("The request `{method}`; its result is under `#/$defs/result`."),
        "type": "object",
        "properties": {
            "id": id,
            "method": {"const": method},
            "params": nullable_unless(required.len() > 2, params),
            "trace": {"anyOf": [trace, {"type": "null"}]},
        },
        "required": required,
        "$defs": defs,
    })
}

fn notification_document(file: &str, notification: &Notification) -> Value {
    let mut defs = Map::new();
    let name = notification.name;
    let (reading, sender) = match notification.sender {
        Sender::Client => (Direction::ToServer, "client"),
        Sender::Server => (Direction::ToClient, "server"),
    };
    let params = described(&mut defs, "params", reading, notification.params);
    let mut required = vec!["method"];
    if has_required(&defs["params"]) {
        required.push("params");
    }
    json!({
        "$schema": DRAFT2020_12,
        "$id": file,
        "title": name,
        "description": format!("The notification `{name}`, which the {sender} sends."),
        "type": "object",
        "properties": {
            "method": {"const": name},
            "params": nullable_unless(required.len() > 1, params),
        },
        "required": required,
        "$defs": defs,
    })
}

/// A compound document, which needs no other file.
fn bundle(documents: &BTreeMap<String, Value>) -> Value {
    let refs: Vec<_> = documents.keys().map(|file| json!({"$ref": file})).collect();
    json!({
        "$schema": DRAFT2020_12,
        "$id": BUNDLE,
        "title": "outpost",
        "description": "Every request and every notification.",
        "anyOf": refs,
        "$defs": documents,
    })
}

/// The direction of a message.
#[derive(Clone, Copy)]
enum Direction {
    /// Sent by a client: everything that the server accepts.
    ToServer,
    /// Sent by the server: exactly what it writes.
    ToClient,
}

fn describe<T: JsonSchema>(types: &mut SchemaGenerator) -> schemars::Schema {
    types.subschema_for::<T>()
}

/// Adds a schema to the definitions, and returns a reference to it. The types it uses are defined
/// inside it, because a type may have different schemas for reading and writing.
fn described(
    defs: &mut Map<String, Value>,
    name: &str,
    reading: Direction,
    describe: Describe,
) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = format!("/$defs/{name}/$defs").into();
    });
    let settings = match reading {
        Direction::ToServer => settings.for_deserialize().with_transform(NullIsAbsent),
        Direction::ToClient => settings.for_serialize(),
    };
    let mut types = settings.into_generator();
    let mut schema = describe(&mut types);
    let inner = types.take_definitions(true);
    if !inner.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(inner));
    }
    defs.insert(name.to_owned(), schema.to_value());
    json!({"$ref": format!("#/$defs/{name}")})
}

/// Whether an object without members is invalid.
fn has_required(description: &Value) -> bool {
    let type_name = description
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.rsplit('/').next());
    let schema = match type_name {
        Some(name) => &description["$defs"][name],
        None => description,
    };
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|required| !required.is_empty())
}

fn nullable_unless(required: bool, schema: Value) -> Value {
    if required {
        schema
    } else {
        json!({"anyOf": [schema, {"type": "null"}]})
    }
}

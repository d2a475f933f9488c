//! One document for each method and notification, and one for all.

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

/// The name of the document that has all others in it.
pub const BUNDLE: &str = "outpost.json";

/// Every document under the name of its file. The same build always gives the same.
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

/// The name of the file that describes a method or notification.
pub fn file_name(method: &str, variant: Option<&str>) -> String {
    let method = method.replace('/', "-");
    match variant {
        None => format!("{method}.json"),
        Some(variant) => format!("{method}.{variant}.json"),
    }
}

fn request_document(file: &str, method: &str, request: &Request) -> Value {
    let mut defs = Map::new();
    let params = described(&mut defs, "params", Reading::Server, request.params);
    described(&mut defs, "result", Reading::Client, request.result);
    let id = described(&mut defs, "id", Reading::Server, describe::<RequestId>);
    let trace = described(
        &mut defs,
        "trace",
        Reading::Server,
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
        Sender::Client => (Reading::Server, "client"),
        Sender::Server => (Reading::Client, "server"),
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

/// A compound document: whoever has this one needs no other file.
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

/// Who reads what is described.
#[derive(Clone, Copy)]
enum Reading {
    /// What a client may send: everything that is understood.
    Server,
    /// What a client will get: exactly what is written.
    Client,
}

fn describe<T: JsonSchema>(types: &mut SchemaGenerator) -> schemars::Schema {
    types.subschema_for::<T>()
}

/// Puts a description into the definitions, and gives a reference to it. The types it uses are
/// definitions inside it, since the same type may be read and written in different ways.
fn described(
    defs: &mut Map<String, Value>,
    name: &str,
    reading: Reading,
    describe: Describe,
) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = format!("/$defs/{name}/$defs").into();
    });
    let settings = match reading {
        Reading::Server => settings.for_deserialize().with_transform(NullIsAbsent),
        Reading::Client => settings.for_serialize(),
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

/// Whether an object without members would be refused.
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

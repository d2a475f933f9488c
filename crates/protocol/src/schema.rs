//! JSON Schema of the protocol, generated from the types that parse it.
//!
//! [`documents`] returns one document per method and notification, and one that contains all of
//! them. The document of a method describes the request; its params are `#/$defs/params` and its
//! result is `#/$defs/result`. The document of a notification describes the notification.
//!
//! A name with two meanings has two documents. The second carries the name of its dialect, as in
//! `command-exec.v0.json`.

use std::collections::BTreeMap;

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    consts::meta_schemas::DRAFT2020_12,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Map, Value, json};

use crate::method::messages;
use crate::{RequestId, TraceContext};

/// The name of the document that contains all others.
pub const BUNDLE: &str = "outpost.json";

/// Generates the schema of a type.
type Describe = fn(&mut SchemaGenerator) -> Schema;

fn describe<T: JsonSchema>(types: &mut SchemaGenerator) -> Schema {
    types.subschema_for::<T>()
}

/// A request or notification and its types.
pub(crate) struct Message {
    name: &'static str,
    /// The dialect, if the name has several meanings.
    dialect: Option<&'static str>,
    sender: Sender,
    params: Describe,
    /// Set for a request.
    result: Option<Describe>,
}

/// The sender of a message.
#[derive(Clone, Copy)]
pub(crate) enum Sender {
    /// The schema describes everything that the server accepts.
    Client,
    /// The schema describes exactly what the server writes.
    Server,
}

impl Sender {
    fn peer(self) -> Self {
        match self {
            Sender::Client => Sender::Server,
            Sender::Server => Sender::Client,
        }
    }
}

impl Message {
    pub(crate) fn request<P: JsonSchema, R: JsonSchema>(name: &'static str) -> Self {
        Message {
            result: Some(describe::<R>),
            ..Self::notification::<P>(name, Sender::Client)
        }
    }

    pub(crate) fn server_request<P: JsonSchema, R: JsonSchema>(name: &'static str) -> Self {
        Message {
            result: Some(describe::<R>),
            ..Self::notification::<P>(name, Sender::Server)
        }
    }

    pub(crate) fn notification<P: JsonSchema>(name: &'static str, sender: Sender) -> Self {
        Message {
            name,
            dialect: None,
            sender,
            params: describe::<P>,
            result: None,
        }
    }

    pub(crate) fn of_dialect(self, dialect: &'static str) -> Self {
        Message {
            dialect: Some(dialect),
            ..self
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn dialect(&self) -> Option<&'static str> {
        self.dialect
    }

    pub(crate) fn is_from_client(&self) -> bool {
        matches!(self.sender, Sender::Client)
    }

    pub(crate) fn params_schema(&self, types: &mut SchemaGenerator) -> Schema {
        (self.params)(types)
    }

    fn document(&self, file: &str) -> Value {
        let name = self.name;
        let mut defs = Map::new();
        let params = described(&mut defs, "params", self.sender, self.params);
        let has_params = has_required(&defs["params"]);
        let params = if has_params {
            params
        } else {
            nullable(&params)
        };
        let mut properties = json!({"method": {"const": name}, "params": params});
        let mut required = vec!["method"];
        let description = if let Some(result) = self.result {
            described(&mut defs, "result", self.sender.peer(), result);
            properties["id"] = described(&mut defs, "id", self.sender, describe::<RequestId>);
            if self.is_from_client() {
                let trace = described(&mut defs, "trace", self.sender, describe::<TraceContext>);
                properties["trace"] = nullable(&trace);
            }
            required.insert(0, "id");
            let sender = match self.sender {
                Sender::Client => "",
                Sender::Server => ", which the server sends",
            };
            format!("The request `{name}`{sender}; its result is under `#/$defs/result`.")
        } else {
            let sender = match self.sender {
                Sender::Client => "client",
                Sender::Server => "server",
            };
            format!("The notification `{name}`, which the {sender} sends.")
        };
        if has_params {
            required.push("params");
        }
        json!({
            "$schema": DRAFT2020_12,
            "$id": file,
            "title": name,
            "description": description,
            "type": "object",
            "properties": properties,
            "required": required,
            "$defs": defs,
        })
    }
}

/// All documents by file name. The result is deterministic.
pub fn documents() -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    for message in messages() {
        let file = file_name(message.name, message.dialect);
        let document = message.document(&file);
        documents.insert(file, document);
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

/// Adds a schema to the definitions, and returns a reference to it. The types it uses are defined
/// inside it, because a type may have different schemas for reading and writing.
fn described(
    defs: &mut Map<String, Value>,
    name: &str,
    sender: Sender,
    describe: Describe,
) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = format!("/$defs/{name}/$defs").into();
    });
    let settings = match sender {
        Sender::Client => settings.for_deserialize().with_transform(NullIsAbsent),
        Sender::Server => settings.for_serialize(),
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

fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// Allows `null` for every optional member, because some clients send it instead of omitting the
/// member.
#[derive(Clone, Copy, Debug)]
struct NullIsAbsent;

impl Transform for NullIsAbsent {
    fn transform(&mut self, schema: &mut Schema) {
        let required = match schema.get("required") {
            Some(Value::Array(names)) => names.clone(),
            _ => Vec::new(),
        };
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (name, property) in properties {
                if !required.iter().any(|required| required == name) {
                    allow_null(property);
                }
            }
        }
        transform_subschemas(self, schema);
    }
}

fn allow_null(schema: &mut Value) {
    // `true` already allows everything.
    let Value::Object(members) = schema else {
        return;
    };
    match members.get("type").cloned() {
        Some(Value::String(name)) if name != "null" => {
            members.insert("type".to_owned(), json!([name, "null"]));
        }
        Some(Value::Array(mut types)) if !types.iter().any(|name| name == "null") => {
            types.push(json!("null"));
            members.insert("type".to_owned(), types.into());
        }
        Some(_) => {}
        None if allows_null_already(members) => {}
        None => {
            // Keep the description on the member, where a reader looks for it.
            let kept = ["description", "default"].map(|name| members.remove_entry(name));
            let inner = std::mem::take(members);
            members.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
            members.extend(kept.into_iter().flatten());
        }
    }
}

fn allows_null_already(members: &Map<String, Value>) -> bool {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    match members.get("anyOf") {
        Some(Value::Array(schemas)) => schemas.iter().any(is_null),
        // Without any of these keywords, everything is allowed.
        _ => !["$ref", "allOf", "oneOf", "enum", "const", "anyOf"]
            .iter()
            .any(|word| members.contains_key(*word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_members_accept_null() {
        let mut schema = schemars::json_schema!({
            "type": "object",
            "required": ["needed"],
            "properties": {
                "needed": {"type": "string"},
                "plain": {"type": "boolean"},
                "either": {"type": ["string", "null"]},
                "named": {"$ref": "#/$defs/X", "description": "words", "default": 1},
                "already": {"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]},
                "words": {"enum": ["a"]},
                "anything": true,
                "described": {"description": "whatever"},
                "nested": {"type": "object", "properties": {"inner": {"type": "integer"}}},
            }
        });
        NullIsAbsent.transform(&mut schema);
        assert_eq!(
            schema.get("properties").unwrap(),
            &json!({
                "needed": {"type": "string"},
                "plain": {"type": ["boolean", "null"]},
                "either": {"type": ["string", "null"]},
                "named": {
                    "anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}],
                    "description": "words",
                    "default": 1,
                },
                "already": {"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]},
                "words": {"anyOf": [{"enum": ["a"]}, {"type": "null"}]},
                "anything": true,
                "described": {"description": "whatever"},
                "nested": {
                    "type": ["object", "null"],
                    "properties": {"inner": {"type": ["integer", "null"]}},
                },
            })
        );
    }
}

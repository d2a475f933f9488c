//! JSON schemas of tools, in the form that most hosts and models support.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// Returns the schema of a tool's arguments, without `$ref`, and the doc comment of the type.
/// Optional properties don't mention `null`, although it is accepted.
pub(super) fn of_arguments<T: JsonSchema>() -> (JsonObject, String) {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let (mut schema, description) = generated::<T>(settings);
    // Some hosts require `properties` even if there are none.
    let empty = || Value::Object(JsonObject::new());
    schema.entry("properties").or_insert_with(empty);
    for property in properties(&mut schema) {
        remove_null(property);
    }
    (schema, description)
}

/// Returns the schema of a tool's output.
pub(super) fn of_output<T: JsonSchema>() -> JsonObject {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize()).0
}

fn generated<T: JsonSchema>(mut settings: SchemaSettings) -> (JsonObject, String) {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    clean(&mut schema);
    // Only the schemas `true` and `false` are not objects.
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("title");
    let description = schema.remove("description");
    let description = description.and_then(|text| text.as_str().map(str::to_owned));
    (schema, description.unwrap_or_default())
}

/// Removes formats such as `uint64`, which clients don't know, and line breaks in
/// descriptions.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.remove("format");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            members.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

fn properties(schema: &mut JsonObject) -> impl Iterator<Item = &mut JsonObject> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let properties = properties.into_iter().flat_map(|all| all.values_mut());
    properties.filter_map(Value::as_object_mut)
}

fn remove_null(property: &mut JsonObject) {
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |choice: &Value| choice.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| !is_null(choice));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            for (name, value) in only {
                property.entry(name).or_insert(value);
            }
        }
    }
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
}

//! Optional members that may be `null`.

use schemars::{
    Schema,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Value, json};

/// Allows `null` for every optional member, because some clients send it instead of omitting the
/// member.
#[derive(Clone, Copy, Debug)]
pub(super) struct NullIsAbsent;

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

fn allows_null_already(members: &serde_json::Map<String, Value>) -> bool {
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
    fn what_may_be_left_out_may_be_null() {
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

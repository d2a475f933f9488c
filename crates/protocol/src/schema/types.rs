//! Schemas of types with hand-written serialization.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    Base64Bytes, Base64Text, DetachedTtl, FsPath, NativePath, PathUri, RequestId, Setting,
};

impl JsonSchema for Base64Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Bytes: standard alphabet, with padding.",
            "type": "string",
            "contentEncoding": "base64",
        })
    }
}

impl JsonSchema for Base64Text {
    fn schema_name() -> Cow<'static, str> {
        Base64Bytes::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Base64Bytes::schema_id()
    }

    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        Base64Bytes::json_schema(types)
    }
}

impl JsonSchema for FsPath {
    fn schema_name() -> Cow<'static, str> {
        PathUri::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        PathUri::schema_id()
    }

    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        PathUri::json_schema(types)
    }
}

impl JsonSchema for NativePath {
    fn schema_name() -> Cow<'static, str> {
        "NativePath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An absolute path of the server's host, as the host writes it.",
            "type": "string",
            "pattern": "^/",
        })
    }
}

impl<T: JsonSchema> JsonSchema for Setting<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Setting_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        types.subschema_for::<Option<T>>()
    }
}

impl JsonSchema for RequestId {
    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a request, which its response returns unchanged.",
            "type": ["string", "integer"],
        })
    }
}

impl JsonSchema for DetachedTtl {
    fn schema_name() -> Cow<'static, str> {
        "DetachedTtl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Milliseconds; `null` is until it is closed, absent as the server is configured.",
            "type": ["integer", "null"],
            "format": "uint64",
            "minimum": 0,
        })
    }
}

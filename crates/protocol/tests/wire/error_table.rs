//! All error texts and codes. Clients match on them, so they are a contract.

use outpost_protocol::{
    ErrorData, ErrorKind, Incoming, Malformed, PathUri, RequestId, RpcError, base64, code,
    encode_error,
};
use serde_json::Value;

fn table<T>(rows: impl IntoIterator<Item = T>, text: impl Fn(&T) -> String) -> String {
    rows.into_iter().map(|row| text(&row) + "\n").collect()
}

#[test]
fn codes() {
    let codes = [
        ("INVALID_REQUEST", code::INVALID_REQUEST),
        ("METHOD_NOT_FOUND", code::METHOD_NOT_FOUND),
        ("INVALID_PARAMS", code::INVALID_PARAMS),
        ("INTERNAL_ERROR", code::INTERNAL_ERROR),
        ("OVERLOADED", code::OVERLOADED),
        ("NOT_FOUND", code::NOT_FOUND),
        ("SESSION_ATTACHED", code::SESSION_ATTACHED),
    ];
    insta::assert_snapshot!(table(codes, |(name, code)| format!("{code} {name}")), @r"
    -32600 INVALID_REQUEST
    -32601 METHOD_NOT_FOUND
    -32602 INVALID_PARAMS
    -32603 INTERNAL_ERROR
    -32001 OVERLOADED
    -32004 NOT_FOUND
    -32010 SESSION_ATTACHED
    ");
}

#[test]
fn error_responses() {
    let not_found = RpcError::new(
        code::NOT_FOUND,
        ErrorKind::NotFound,
        "No such file or directory (os error 2)",
    );
    let errors = [
        (
            RequestId::Integer(1),
            RpcError::invalid_request("unknown process id \"p\""),
        ),
        (
            RequestId::Text("x".to_owned()),
            RpcError::method_not_found("no/such"),
        ),
        (
            RequestId::Integer(2),
            RpcError::invalid_params("argv must not be empty"),
        ),
        (
            RequestId::Integer(3),
            RpcError::internal("Permission denied (os error 13)"),
        ),
        (RequestId::Integer(4), RpcError::overloaded()),
        (RequestId::UNATTRIBUTED, not_found.with_errno(Some(2))),
    ];
    let lines = table(errors, |(id, error)| {
        let mut out = Vec::new();
        encode_error(&mut out, id, error);
        String::from_utf8(out).unwrap()
    });
    insta::assert_snapshot!(lines, @r#"
    {"id":1,"error":{"code":-32600,"message":"unknown process id \"p\"","data":{"kind":"invalidRequest"}}}
    {"id":"x","error":{"code":-32601,"message":"exec-server stub does not implement `no/such` yet","data":{"kind":"methodNotFound"}}}
    {"id":2,"error":{"code":-32602,"message":"argv must not be empty","data":{"kind":"invalidParams"}}}
    {"id":3,"error":{"code":-32603,"message":"Permission denied (os error 13)","data":{"kind":"internal"}}}
    {"id":4,"error":{"code":-32001,"message":"Server overloaded; retry later.","data":{"kind":"overloaded"}}}
    {"id":-1,"error":{"code":-32004,"message":"No such file or directory (os error 2)","data":{"kind":"notFound","errno":2}}}
    "#);
}

#[test]
fn kinds() {
    // The schema lists every variant.
    let schema = schemars::schema_for!(ErrorKind);
    let variants = schema.get("oneOf").and_then(Value::as_array).unwrap();
    let kinds = variants.iter().map(|variant| {
        let kind: ErrorKind = serde_json::from_value(variant["const"].clone()).unwrap();
        assert_eq!(variant["const"], kind.to_string());
        kind
    });
    // Not sent: it stands for the kinds of a newer server.
    let sent = kinds.filter(|kind| *kind != ErrorKind::Unknown);
    let names = table(sent, ErrorKind::to_string);
    insta::assert_snapshot!(names, @r"
    invalidRequest
    methodNotFound
    invalidParams
    internal
    overloaded
    outOfMemory
    forbidden
    malformedMessage
    unexpectedMessage
    handshake
    unknownSession
    sessionAttached
    sessionReplaced
    sessionEnded
    unknownProcess
    duplicateProcess
    startCancelled
    programNotFound
    programNotExecutable
    workingDirectory
    spawnFailed
    sandbox
    stdinClosed
    notATerminal
    notFound
    permissionDenied
    unknownHandle
    io
    http
    ");
}

#[test]
fn unknown_kinds_and_other_data_are_tolerated() {
    let data = |text: &str| {
        let error = format!(r#"{{"code":-32603,"message":"m"{text}}}"#);
        serde_json::from_str::<RpcError>(&error).unwrap().data
    };
    let of = |kind, errno| {
        Some(ErrorData {
            kind,
            errno,
            member: None,
            scope: None,
        })
    };
    assert_eq!(data(""), None);
    assert_eq!(data(r#","data":null"#), None);
    assert_eq!(data(r#","data":[1,2]"#), None);
    assert_eq!(data(r#","data":{"why":1}"#), None);
    assert_eq!(
        data(r#","data":{"kind":"ofTheFuture"}"#),
        of(ErrorKind::Unknown, None)
    );
    assert_eq!(
        data(r#","data":{"kind":"io","errno":30,"more":1}"#),
        of(ErrorKind::Io, Some(30))
    );
}

#[test]
fn malformed_messages() {
    let long_key = format!(r#"{{"{0}":1,"{0}":1}}"#, "ä".repeat(100));
    let messages: [&[u8]; 21] = [
        b"",
        b"nonsense",
        b"{\"method\":\"m\"",
        b"{\"method\":\"m\"} x",
        b"{\"method\":\"m\",}",
        b"{\"method\":\"\\ud800\"}",
        b"{\"method\":\"m\",\"params\":1e999}",
        b"{\"method\":\"\xff\"}",
        b"{\"method\":\"\xc3",
        b"{\"method\":\"m\",\"method\":\"m\"}",
        b"{\"a\\n\\\"\":1,\"a\\n\\\"\":1}",
        long_key.as_bytes(),
        b"[]",
        b"\"initialize\"",
        b"{}",
        b"{\"id\":1}",
        b"{\"id\":null,\"method\":\"m\"}",
        b"{\"id\":1.5,\"result\":{}}",
        b"{\"id\":1,\"method\":null}",
        b"{\"result\":{}}",
        b"{\"id\":null,\"result\":{}}",
    ];
    let lines = table(messages, |message| {
        let malformed = Incoming::parse(message).unwrap_err();
        let start = &message[..message.len().min(60)];
        format!("{malformed}    <- {:?}", String::from_utf8_lossy(start))
    });
    insta::assert_snapshot!(lines, @r#"
    EOF while parsing a value at line 1 column 0    <- ""
    expected ident at line 1 column 2    <- "nonsense"
    EOF while parsing an object at line 1 column 13    <- "{\"method\":\"m\""
    trailing characters at line 1 column 16    <- "{\"method\":\"m\"} x"
    trailing comma at line 1 column 15    <- "{\"method\":\"m\",}"
    unexpected end of hex escape at line 1 column 18    <- "{\"method\":\"\\ud800\"}"
    number out of range at line 1 column 28    <- "{\"method\":\"m\",\"params\":1e999}"
    message is not UTF-8: invalid utf-8 sequence of 1 bytes from index 11    <- "{\"method\":\"�\"}"
    message is not UTF-8: incomplete utf-8 byte sequence from index 11    <- "{\"method\":\"�"
    repeated key `method`    <- "{\"method\":\"m\",\"method\":\"m\"}"
    repeated key `a\n\"`    <- "{\"a\\n\\\"\":1,\"a\\n\\\"\":1}"
    repeated key `ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää…`    <- "{\"äääääääääääääääääääääääääääää"
    message is not a JSON object    <- "[]"
    message is not a JSON object    <- "\"initialize\""
    message has no `method`, `result` or `error`    <- "{}"
    message has no `method`, `result` or `error`    <- "{\"id\":1}"
    `id` is neither a string nor a 64-bit integer    <- "{\"id\":null,\"method\":\"m\"}"
    `id` is neither a string nor a 64-bit integer    <- "{\"id\":1.5,\"result\":{}}"
    `method` is not a string    <- "{\"id\":1,\"method\":null}"
    `result` without an `id`    <- "{\"result\":{}}"
    `result` without an `id`    <- "{\"id\":null,\"result\":{}}"
    "#);
    insta::assert_snapshot!(Malformed::TooLarge, @"message is larger than 67108864 bytes");
}

#[test]
fn paths() {
    let uris = [
        "",
        "/srv/project",
        "srv",
        "file",
        "http://localhost/srv",
        "file://example.org/srv",
        "file://localhost:80/srv",
        "file://srv",
        "file:",
        "file://",
        "file:srv",
        "file:///srv?x",
        "file://localhost?x",
        "file:///srv#x",
        "file://#x",
        "file:///srv%",
        "file:///srv%2",
        "file:///srv%zz",
        "file:///srv%00",
        "file:///srv\0",
    ];
    let lines = table(uris, |uri| {
        format!("{}    <- {uri:?}", PathUri::parse(uri).unwrap_err())
    });
    insta::assert_snapshot!(lines, @r#"
    invalid URI: relative URL without a base    <- ""
    invalid URI: relative URL without a base    <- "/srv/project"
    invalid URI: relative URL without a base    <- "srv"
    invalid URI: relative URL without a base    <- "file"
    unsupported path URI scheme `http`    <- "http://localhost/srv"
    'file://example.org/srv' is invalid on 'linux'    <- "file://example.org/srv"
    'file://localhost:80/srv' is invalid on 'linux'    <- "file://localhost:80/srv"
    'file://srv' is invalid on 'linux'    <- "file://srv"
    file: URI is not absolute    <- "file:"
    file: URI is not absolute    <- "file://"
    file: URI is not absolute    <- "file:srv"
    query parameters are not allowed in path URIs    <- "file:///srv?x"
    query parameters are not allowed in path URIs    <- "file://localhost?x"
    fragments are not allowed in path URIs    <- "file:///srv#x"
    fragments are not allowed in path URIs    <- "file://#x"
    file: URI has an invalid percent escape    <- "file:///srv%"
    file: URI has an invalid percent escape    <- "file:///srv%2"
    file: URI has an invalid percent escape    <- "file:///srv%zz"
    'file:///srv%00' is invalid on 'linux'    <- "file:///srv%00"
    'file:///srv%00' is invalid on 'linux'    <- "file:///srv\0"
    "#);
}

#[test]
fn base64_texts() {
    let texts = [
        "a",
        "aGVsbG8",
        "aGVs bG8=",
        "aG=sbG8=",
        "a===",
        "====",
        "aGVsbG9=",
        "+/==",
        "aGVsbG8\u{e4}",
    ];
    let lines = table(texts, |text| {
        format!(
            "{}    <- {text:?}",
            base64::decode(text.as_bytes()).unwrap_err()
        )
    });
    insta::assert_snapshot!(lines, @r#"
    Invalid input length: 1    <- "a"
    Invalid padding    <- "aGVsbG8"
    Invalid symbol 32, offset 4.    <- "aGVs bG8="
    Invalid symbol 61, offset 2.    <- "aG=sbG8="
    Invalid symbol 61, offset 1.    <- "a==="
    Invalid symbol 61, offset 0.    <- "===="
    Invalid last symbol 57, offset 6.    <- "aGVsbG9="
    Invalid last symbol 47, offset 1.    <- "+/=="
    Invalid symbol 195, offset 7.    <- "aGVsbG8ä"
    "#);
}

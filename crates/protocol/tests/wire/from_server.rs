//! Parsing of messages from servers.

use outpost_protocol::{
    FromServer, OutputEncoder, ProcessExited, ReceivedInitializeResult, Stream, encode_request,
    parse_params,
};
use proptest::prelude::*;
use serde_json::json;

fn parse(text: &str) -> FromServer<'_> {
    FromServer::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

proptest! {
    #[test]
    fn output_round_trips(
        id in "[^\u{0}]{1,12}",
        seq: u64,
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut message = Vec::new();
        OutputEncoder::new(&id).encode(&mut message, seq, Stream::Stderr, &bytes);
        let FromServer::Output(output) = FromServer::parse(&message).unwrap() else {
            panic!("it is output");
        };
        prop_assert_eq!(output.process_id, id);
        prop_assert_eq!(output.seq, seq);
        prop_assert_eq!(output.stream, Stream::Stderr);
        prop_assert_eq!(output.chunk, bytes);
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = FromServer::parse(&bytes);
    }
}

#[test]
fn members_parse_in_any_order() {
    let output = r#"{"params":{"processId":"p","seq":1,"stream":"pty","chunk":"eA=="},"x":[{}],"method":"process/output"}"#;
    assert!(matches!(parse(output), FromServer::Output(output) if *output.chunk == b"x"[..]));
    let answer = r#"{"result":{"a":1},"jsonrpc":"2.0","id":7}"#;
    assert!(
        matches!(parse(answer), FromServer::Response { result, .. } if result.get() == r#"{"a":1}"#)
    );
}

#[test]
fn kinds_of_messages_are_distinguished() {
    assert!(matches!(
        parse(r#"{"method":"process/closed","params":{"processId":"p","seq":3}}"#),
        FromServer::Notification { method, params: Some(_) } if method == "process/closed"
    ));
    assert!(matches!(
        parse(r#"{"method":"x"}"#),
        FromServer::Notification { params: None, .. }
    ));
    assert!(matches!(
        parse(r#"{"id":1,"method":"ask"}"#),
        FromServer::Request { .. }
    ));
    assert!(matches!(
        parse(r#"{"id":1,"result":null}"#),
        FromServer::Response { .. }
    ));
    assert!(matches!(
        parse(r#"{"id":1,"error":{"code":-32600,"message":"m"}}"#),
        FromServer::Error { id: Some(_), error } if error.code == -32600
    ));
    assert!(matches!(
        parse(r#"{"error":{"code":1,"message":"m"}}"#),
        FromServer::Error { id: None, .. }
    ));
    for nonsense in ["", "[]", "{}", r#"{"result":1}"#, r#"{"id":1}"#, "3"] {
        assert!(
            FromServer::parse(nonsense.as_bytes()).is_err(),
            "{nonsense}"
        );
    }
}

#[test]
fn older_servers_are_accepted() {
    let initialize_result: ReceivedInitializeResult =
        serde_json::from_value(json!({"sessionId": "s"})).unwrap();
    assert_eq!(initialize_result.session_id.as_deref(), Some("s"));
    assert!(!initialize_result.capabilities.acked);
    let initialize_result: ReceivedInitializeResult =
        serde_json::from_value(json!({"capabilities": null})).unwrap();
    assert_eq!(initialize_result, ReceivedInitializeResult::default());
    let FromServer::Notification { params, .. } =
        parse(r#"{"method":"process/exited","params":{"processId":"p","seq":2,"exitCode":1}}"#)
    else {
        panic!("it is a notification");
    };
    let exited: ProcessExited = parse_params(params).unwrap();
    assert_eq!((exited.exit_code, exited.sandbox_denied), (1, None));
}

#[test]
fn encoded_request_has_its_id() {
    let mut out = b"before".to_vec();
    encode_request(&mut out, 5, "process/list", &json!({})).unwrap();
    assert_eq!(
        out,
        br#"before{"id":5,"method":"process/list","params":{}}"#
    );
}

//! The wire form of `http/request`, and its encoder compared with serde.

use outpost_protocol::{
    Base64Bytes, BodyEncoder, HTTP_BODY_DELTA, HttpBodyDelta, HttpHeader, HttpHeaderParams,
    HttpRequestParams, HttpRequestResult, RedirectPolicy, RequestId, encode_notification,
    encode_response, parse_params,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

fn parsed(params: &str) -> Result<HttpRequestParams, String> {
    let params = RawValue::from_string(params.to_owned()).unwrap();
    parse_params(Some(&params)).map_err(|error| error.to_string())
}

#[test]
fn absent_and_null_members_get_defaults() {
    let least = parsed(r#"{"method":"GET","url":"http://h/"}"#).unwrap();
    let nulls = r#"{"method":"GET","url":"http://h/","headers":null,"bodyBase64":null,
        "timeoutMs":null,"redirectPolicy":null,"requestId":null,"streamResponse":null,"acked":null}"#;
    assert_eq!(parsed(nulls).unwrap(), least);
    assert_eq!(
        least,
        HttpRequestParams {
            method: "GET".to_owned(),
            url: "http://h/".to_owned(),
            headers: Vec::new(),
            body_base64: None,
            timeout_ms: None,
            redirect_policy: RedirectPolicy::Follow,
            request_id: String::new(),
            stream_response: false,
            acked: false,
        }
    );
}

#[test]
fn all_members_parse() {
    let all = parsed(
        r#"{"method":"POST","url":"http://h/","headers":[{"name":"A","value":"b","valueEnvVar":"V"},
        {"name":"A","value":"c","valueEnvVar":null}],"bodyBase64":"aGk=","timeoutMs":5,
        "redirectPolicy":"stop","requestId":"r1","streamResponse":true,"acked":true}"#,
    );
    let header = |value: &str, variable: Option<&str>| HttpHeaderParams {
        name: "A".to_owned(),
        value: value.to_owned(),
        value_env_var: variable.map(str::to_owned),
    };
    assert_eq!(
        all.unwrap(),
        HttpRequestParams {
            method: "POST".to_owned(),
            url: "http://h/".to_owned(),
            headers: vec![header("b", Some("V")), header("c", None)],
            body_base64: Some(Base64Bytes(b"hi".to_vec())),
            timeout_ms: Some(5),
            redirect_policy: RedirectPolicy::Stop,
            request_id: "r1".to_owned(),
            stream_response: true,
            acked: true,
        }
    );
}

#[test]
fn invalid_params_are_rejected() {
    for wrong in [
        r#"{"url":"http://h/"}"#,
        r#"{"method":"GET"}"#,
        r#"{"method":"GET","url":"u","headers":[["A","b",null]]}"#,
        r#"{"method":"GET","url":"u","headers":[{"value":"b"}]}"#,
        r#"{"method":"GET","url":"u","bodyBase64":"?"}"#,
        r#"{"method":"GET","url":"u","timeoutMs":-1}"#,
        r#"{"method":"GET","url":"u","redirectPolicy":"maybe"}"#,
    ] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn results_and_last_chunk_serialize() {
    let result = HttpRequestResult {
        status: 201,
        headers: vec![HttpHeader {
            name: "set-cookie".to_owned(),
            value: "a=b".to_owned(),
        }],
        body_base64: b"hi".to_vec(),
    };
    let mut out = Vec::new();
    encode_response(&mut out, &RequestId::Integer(1), &result).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"{"id":1,"result":{"status":201,"headers":[{"name":"set-cookie","value":"a=b"}],"bodyBase64":"aGk="}}"#);

    let last = HttpBodyDelta {
        request_id: "r1".into(),
        seq: 2,
        delta_base64: b"".as_slice().into(),
        done: true,
        error: Some("the body ended early".to_owned()),
    };
    let mut out = Vec::new();
    encode_notification(&mut out, HTTP_BODY_DELTA, &last).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"{"method":"http/request/bodyDelta","params":{"requestId":"r1","seq":2,"deltaBase64":"","done":true,"error":"the body ended early"}}"#);
}

proptest! {
    #[test]
    fn body_frame_equals_serde_output(
        request_id: String,
        seq: u64,
        payload in prop::collection::vec(any::<u8>(), 0..4_000),
    ) {
        let mut by_serde = Vec::new();
        let delta = HttpBodyDelta {
            request_id: (&request_id).into(),
            seq,
            delta_base64: (&payload).into(),
            done: false,
            error: None,
        };
        encode_notification(&mut by_serde, HTTP_BODY_DELTA, &delta).unwrap();
        let frame = BodyEncoder::new(&request_id);
        let mut by_hand = Vec::new();
        frame.encode(&mut by_hand, seq, &payload);
        prop_assert_eq!(String::from_utf8_lossy(&by_hand), String::from_utf8_lossy(&by_serde));
        prop_assert_eq!(frame.encoded_len(seq, payload.len()), by_serde.len());
    }
}

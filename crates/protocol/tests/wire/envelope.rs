//! Parsing of envelopes.

use outpost_protocol::{Incoming, MAX_JSON_VALUES, MAX_MESSAGE_BYTES, Malformed, RequestId};
use proptest::prelude::*;

use crate::envelope_model::{Reading, message, tree};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn messages_parse_like_the_model(message in message()) {
        prop_assert_eq!(Reading::of(message.text().as_bytes()), Reading::expected(&message));
    }

    #[test]
    fn any_json_parses_like_the_model(tree in tree()) {
        prop_assert_eq!(Reading::of(tree.text().as_bytes()), Reading::expected(&tree));
    }

    #[test]
    fn any_bytes_do_not_panic(bytes: Vec<u8>) {
        accepts_only_json(&bytes)?;
    }

    #[test]
    fn damaged_messages_do_not_panic(
        message in message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
    ) {
        let mut bytes = message.text().into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        accepts_only_json(&bytes)?;
        bytes.truncate(cut.index(bytes.len()));
        accepts_only_json(&bytes)?;
    }
}

fn accepts_only_json(bytes: &[u8]) -> Result<(), TestCaseError> {
    if Reading::of(bytes) != Reading::Malformed {
        let value: serde_json::Value = serde_json::from_slice(bytes)
            .map_err(|error| TestCaseError::fail(format!("accepted although {error}")))?;
        prop_assert!(value.is_object());
    }
    Ok(())
}

fn malformed(message: impl AsRef<[u8]>) -> Malformed {
    Incoming::parse(message.as_ref()).expect_err("should be malformed")
}

#[test]
fn parsed_message_borrows() {
    let message = br#"{"id":"a","method":"process/read","params":{"processId":"p"}}"#;
    let Ok(Incoming::Request {
        id,
        method,
        params: Some(params),
        trace: None,
        ..
    }) = Incoming::parse(message)
    else {
        panic!("not a request");
    };
    assert_eq!(id, RequestId::Text("a".to_owned()));
    assert!(matches!(method, std::borrow::Cow::Borrowed("process/read")));
    assert!(message.as_ptr_range().contains(&params.get().as_ptr()));
}

#[test]
fn ids_round_trip() {
    for id in [
        "-9223372036854775808",
        "9223372036854775807",
        "0",
        r#""""#,
        r#""1""#,
    ] {
        let message = format!(r#"{{"id":{id},"method":"m"}}"#);
        let Ok(Incoming::Request { id: read, .. }) = Incoming::parse(message.as_bytes()) else {
            panic!("{id} is a good id");
        };
        assert_eq!(serde_json::to_string(&read).unwrap(), id);
    }
}

#[test]
fn negative_zero_is_an_integer() {
    let Ok(Incoming::Request { id, .. }) = Incoming::parse(br#"{"id":-0,"method":"m"}"#) else {
        panic!("it is a good id");
    };
    assert_eq!(id, RequestId::Integer(0));
}

#[test]
fn other_ids_are_malformed() {
    for id in [
        "null",
        "1.0",
        "1e3",
        "9223372036854775808",
        "-9223372036854775809",
        "true",
        "[1]",
        "{}",
    ] {
        let message = format!(r#"{{"id":{id},"method":"m"}}"#);
        let kind = malformed(message);
        assert!(matches!(kind, Malformed::InvalidId), "{id}: {kind}");
    }
}

#[test]
fn repeated_key_is_malformed_at_any_depth() {
    for message in [
        r#"{"method":"m","method":"m"}"#,
        r#"{"method":"m","x":1,"x":1}"#,
        r#"{"method":"m","params":{"a":1,"\u0061":2}}"#,
        r#"{"method":"m","params":[[{"b":{"a":1,"c":{},"a":2}}]]}"#,
        r#"{"id":1,"result":{"a":1,"a":1}}"#,
    ] {
        let kind = malformed(message);
        assert!(
            matches!(kind, Malformed::RepeatedKey { .. }),
            "{message}: {kind}"
        );
    }
}

#[test]
fn key_may_repeat_in_another_object() {
    let message =
        br#"{"method":"m","params":{"a":{"a":[{"a":1},{"a":1}]},"b":{"a":1},"method":1}}"#;
    assert!(Incoming::parse(message).is_ok());
}

#[test]
fn repeated_key_is_found_in_wide_objects() {
    for width in 1..64 {
        let members: Vec<_> = (0..width)
            .map(|key| format!(r#""k{key}":{{"k0":0}}"#))
            .collect();
        let members = members.join(",");
        let good = format!(r#"{{"method":"m","params":{{{members}}}}}"#);
        assert!(Incoming::parse(good.as_bytes()).is_ok(), "{width} keys");
        for repeated in [0, width / 2, width - 1] {
            let bad = format!(r#"{{"method":"m","params":{{{members},"k{repeated}":0}}}}"#);
            assert_eq!(
                malformed(bad).to_string(),
                format!("repeated key `k{repeated}`")
            );
        }
        let after = format!(r#"{{"method":"m","params":{{{members}}},"x":0,"method":0}}"#);
        assert_eq!(malformed(after).to_string(), "repeated key `method`");
    }
}

/// A message with this many values, three of which enclose the others.
fn message_of(values: usize) -> String {
    let zeros = vec!["0"; values - 3].join(",");
    format!(r#"{{"method":"m","params":[{zeros}]}}"#)
}

#[test]
fn number_of_values_is_bounded() {
    assert!(Incoming::parse(message_of(MAX_JSON_VALUES).as_bytes()).is_ok());
    assert_eq!(
        malformed(message_of(MAX_JSON_VALUES + 1)).to_string(),
        "message holds more than 262144 JSON values"
    );
}

#[test]
fn values_count_at_any_depth() {
    let zeros = vec!["0"; MAX_JSON_VALUES / 2].join(",");
    for message in [
        format!(r#"{{"method":"m","params":[[{zeros}],[{zeros}]]}}"#),
        format!(r#"{{"method":"m","params":[{zeros}],"unknown":[{zeros}]}}"#),
        format!(r#"{{"id":1,"result":[{zeros}],"error":[{zeros}]}}"#),
    ] {
        let kind = malformed(message);
        assert!(matches!(kind, Malformed::TooManyValues), "{kind}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"method":"m","params":{open}{close}}}"#)
    };
    assert!(Incoming::parse(nested(126).as_bytes()).is_ok());
    assert_eq!(
        malformed(nested(127)).to_string(),
        "recursion limit exceeded at line 1 column 150"
    );
    assert!(matches!(
        malformed(nested(4_000_000)),
        Malformed::NotJson(_)
    ));
    assert!(matches!(
        malformed("[".repeat(4_000_000)),
        Malformed::NotJson(_)
    ));
}

#[test]
fn size_is_bounded() {
    let mut message = br#"{"method":"m"}"#.to_vec();
    message.resize(MAX_MESSAGE_BYTES, b' ');
    assert!(Incoming::parse(&message).is_ok());
    message.push(b' ');
    assert!(matches!(malformed(message), Malformed::TooLarge));
}

//! Compares base64 with the `base64` crate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outpost_protocol::{Base64Bytes, base64 as ours};
use proptest::prelude::*;

/// Texts that are almost base64: they differ in a byte or two from a valid one.
fn almost_base64() -> impl Strategy<Value = Vec<u8>> {
    let symbol = prop_oneof![
        20 => prop::sample::select(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".to_vec()
        ),
        2 => Just(b'='),
        1 => any::<u8>(),
    ];
    prop_oneof![
        prop::collection::vec(symbol.clone(), 0..12),
        (
            prop::collection::vec(any::<u8>(), 0..200),
            any::<prop::sample::Index>(),
            symbol
        )
            .prop_map(|(bytes, at, symbol)| {
                let mut text = STANDARD.encode(bytes).into_bytes();
                if !text.is_empty() {
                    let at = at.index(text.len());
                    text[at] = symbol;
                }
                text
            }),
    ]
}

proptest! {
    #[test]
    fn encodes_like_the_reference(before in "[a-z]{0,5}", bytes: Vec<u8>) {
        let mut out = before.clone().into_bytes();
        ours::encode_into(&mut out, &bytes);
        prop_assert_eq!(String::from_utf8(out).unwrap(), before + &STANDARD.encode(&bytes));
    }

    #[test]
    fn encoded_len_is_exact(bytes: Vec<u8>) {
        prop_assert_eq!(ours::encoded_len(bytes.len()), STANDARD.encode(&bytes).len());
    }

    #[test]
    fn decodes_what_it_encodes(bytes: Vec<u8>) {
        prop_assert_eq!(ours::decode(STANDARD.encode(&bytes).as_bytes()), Ok(bytes));
    }

    #[test]
    fn accepts_and_rejects_like_the_reference(text in almost_base64()) {
        prop_assert_eq!(ours::decode(&text).ok(), STANDARD.decode(&text).ok());
    }

    #[test]
    fn json_form_is_the_plain_string(bytes in prop::collection::vec(any::<u8>(), 0..10_000)) {
        let json = serde_json::to_string(&Base64Bytes(bytes.clone())).unwrap();
        prop_assert_eq!(&json, &format!("\"{}\"", STANDARD.encode(&bytes)));
        prop_assert_eq!(serde_json::from_str::<Base64Bytes>(&json).unwrap().0, bytes);
    }
}

#[test]
fn json_form_may_have_escapes() {
    let bytes: Base64Bytes = serde_json::from_str(r#""\u0061GVsbG8\/""#).unwrap();
    assert_eq!(bytes.0, STANDARD.decode("aGVsbG8/").unwrap());
}

#[test]
fn lengths_around_an_encoding_step_round_trip() {
    for length in (0..10).chain(3060..3085).chain(6140..6150) {
        let bytes: Vec<u8> = (0..length).map(|index| (index * 31) as u8).collect();
        let json = serde_json::to_string(&Base64Bytes(bytes.clone())).unwrap();
        assert_eq!(
            json,
            format!("\"{}\"", STANDARD.encode(&bytes)),
            "{length} bytes"
        );
    }
}

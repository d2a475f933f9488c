//! Compares the encoders of file blocks with serde.

use outpost_protocol::{
    Base64Bytes, FsReadBlockResult, FsWriteBlockParams, Method, RequestId, encode_read_block,
    encode_request, encode_response, encode_write_block,
};
use proptest::prelude::*;

fn request_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::Integer),
        any::<String>().prop_map(RequestId::Text),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn write_block_equals_serde_output(
        id: i64,
        handle_id: String,
        offset: u64,
        chunk in prop::collection::vec(any::<u8>(), 0..4_000),
        before in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut by_hand = before.clone();
        encode_write_block(&mut by_hand, id, &handle_id, offset, &chunk);
        let mut by_serde = before;
        let chunk = Base64Bytes(chunk);
        let params = FsWriteBlockParams { handle_id, offset, chunk };
        encode_request(&mut by_serde, id, Method::FsWriteBlock.name(), &params).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&by_hand), String::from_utf8_lossy(&by_serde));
    }

    #[test]
    fn read_block_equals_serde_output(
        id in request_id(),
        chunk in prop::collection::vec(any::<u8>(), 0..4_000),
        eof: bool,
        before in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut by_hand = before.clone();
        encode_read_block(&mut by_hand, &id, &chunk, eof);
        let mut by_serde = before;
        encode_response(&mut by_serde, &id, &FsReadBlockResult { chunk, eof }).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&by_hand), String::from_utf8_lossy(&by_serde));
    }
}

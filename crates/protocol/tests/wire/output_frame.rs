//! Compares the encoder of output with serde.

use outpost_protocol::{OutputEncoder, PROCESS_OUTPUT, ProcessOutput, Stream, encode_notification};
use proptest::prelude::*;

fn stream() -> impl Strategy<Value = Stream> {
    prop::sample::select(vec![Stream::Stdout, Stream::Stderr, Stream::Pty])
}

/// Numbers of all lengths; uniformly random ones would mostly be long.
fn seq() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift),
        (0..20u32, -1..=1i64).prop_map(|(power, by)| 10u64.pow(power).saturating_add_signed(by)),
        Just(u64::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn frame_equals_serde_output(
        process_id: String,
        seq in seq(),
        stream in stream(),
        payload in prop::collection::vec(any::<u8>(), 0..4_000),
        before in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut by_serde = before.clone();
        let output = ProcessOutput {
            process_id: (&process_id).into(),
            seq,
            stream,
            chunk: (&payload).into(),
        };
        encode_notification(&mut by_serde, PROCESS_OUTPUT, &output).unwrap();

        let frame = OutputEncoder::new(&process_id);
        let mut by_hand = before.clone();
        frame.encode(&mut by_hand, seq, stream, &payload);

        prop_assert_eq!(String::from_utf8_lossy(&by_hand), String::from_utf8_lossy(&by_serde));
        prop_assert_eq!(
            frame.encoded_len(seq, stream, payload.len()),
            by_serde.len() - before.len()
        );
    }
}

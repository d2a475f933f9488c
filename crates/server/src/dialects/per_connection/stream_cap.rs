//! Output cap of one stream. Pure.

/// Applies the output cap to one stream, and buffers its output unless it is streamed.
#[derive(Debug)]
pub(super) struct StreamCap {
    /// Bytes that the client gets at most; `None` for no limit.
    cap: Option<u64>,
    taken: u64,
    /// No further byte reaches the client: it got all that it may have.
    pub(super) reached: bool,
    /// Output for the final message; `None` if output is streamed.
    buffer: Option<Vec<u8>>,
    /// Upper bound of the buffer's size as JSON text.
    pub(super) encoded_bytes: u64,
    /// Output within the cap was dropped because the final message was full.
    pub(super) truncated: bool,
    /// Output beyond the cap was dropped.
    exceeded: bool,
}

/// The leading bytes of a chunk that are within the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AllowedPrefix {
    pub(super) len: usize,
    /// These are the last bytes that the client gets of this stream.
    pub(super) last: bool,
}

impl StreamCap {
    /// Creates a cap for output that is sent as it arrives, or buffered for the final
    /// message.
    pub(super) fn new(streamed: bool, cap: Option<u64>) -> Self {
        StreamCap {
            cap,
            taken: 0,
            reached: false,
            buffer: (!streamed).then(Vec::new),
            encoded_bytes: 0,
            truncated: false,
            exceeded: false,
        }
    }

    /// Counts a chunk of `len` bytes. Returns `None` once the cap was reached.
    pub(super) fn take(&mut self, len: usize) -> Option<AllowedPrefix> {
        if self.reached {
            self.exceeded |= len > 0;
            return None;
        }
        let left = self.cap.map_or(u64::MAX, |cap| cap - self.taken);
        let taken = left.min(len as u64);
        self.taken += taken;
        self.exceeded |= taken < len as u64;
        // An exactly used cap counts as reached, whether or not more output follows.
        self.reached = taken == left && self.cap.is_some();
        Some(AllowedPrefix {
            len: taken as usize,
            last: self.reached,
        })
    }

    /// Consumes output that needs no message now: buffered output, and output beyond the
    /// cap. Returns false if the output has to be streamed. The buffer may grow to `space`
    /// bytes of JSON text.
    pub(super) fn consume(&mut self, bytes: &[u8], space: u64) -> bool {
        if self.is_streamed() {
            self.exceeded |= self.reached && !bytes.is_empty();
            return self.reached;
        }
        let allowed = self.take(bytes.len());
        if let (Some(buffer), Some(allowed)) = (&mut self.buffer, allowed) {
            let bytes = &bytes[..allowed.len];
            let (fitting, encoded) = fit(bytes, space.saturating_sub(self.encoded_bytes));
            // Out of memory is handled like a reached cap.
            let stored = match buffer.try_reserve(fitting) {
                Ok(()) => {
                    buffer.extend_from_slice(&bytes[..fitting]);
                    fitting
                }
                Err(_) => 0,
            };
            self.encoded_bytes += encoded;
            if stored < bytes.len() {
                self.reached = true;
                self.truncated = true;
            }
        }
        true
    }

    /// Returns whether output was dropped.
    pub(super) fn is_incomplete(&self) -> bool {
        self.truncated || self.exceeded
    }

    /// Returns how many of `len` bytes would be buffered, as far as the cap decides.
    pub(super) fn buffered_len(&self, len: usize) -> usize {
        if self.is_streamed() || self.reached {
            return 0;
        }
        let left = self.cap.map_or(u64::MAX, |cap| cap - self.taken);
        left.min(len as u64) as usize
    }

    /// Returns whether all further output will be consumed.
    pub(super) fn streams_no_more(&self) -> bool {
        !self.is_streamed() || self.reached
    }

    /// Discards the buffer, for lack of memory.
    pub(super) fn discard(&mut self) {
        if self.buffer.take_if(|buffer| !buffer.is_empty()).is_some() {
            self.buffer = Some(Vec::new());
            self.reached = true;
            self.truncated = true;
        }
    }

    /// Takes the buffer as text. Invalid UTF-8 is replaced.
    pub(super) fn take_text(&mut self) -> String {
        let bytes = self.buffer.as_mut().map(std::mem::take).unwrap_or_default();
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    fn is_streamed(&self) -> bool {
        self.buffer.is_none()
    }
}

/// Returns how many leading bytes fit into `space` bytes of JSON text, and how many bytes of
/// text they take. A character split between two chunks may be counted too high, never too
/// low.
fn fit(bytes: &[u8], space: u64) -> (usize, u64) {
    let (mut fitting, mut encoded) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().chars().map(|letter| {
            let size = match letter {
                '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                '\0'..'\u{20}' => 6,
                other => other.len_utf8(),
            };
            (letter.len_utf8(), size)
        });
        let invalid = Some(chunk.invalid().len()).filter(|length| *length > 0);
        let invalid = invalid.map(|length| (length, char::REPLACEMENT_CHARACTER.len_utf8()));
        for (length, size) in valid.chain(invalid) {
            if encoded + size as u64 > space {
                return (fitting, encoded);
            }
            fitting += length;
            encoded += size as u64;
        }
    }
    (fitting, encoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn client_gets_leading_bytes_up_to_cap(
            cap in proptest::option::of(0_u64..40),
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..8),
        ) {
            let all = chunks.concat();
            let expected = &all[..cap.map_or(all.len(), |cap| all.len().min(cap as usize))];
            let mut stream = StreamCap::new(true, cap);
            let mut got = Vec::new();
            let mut over = false;
            for chunk in &chunks {
                prop_assert_eq!(stream.consume(chunk, 0), over);
                let allowed = stream.take(chunk.len());
                prop_assert_eq!(allowed.is_none(), over, "nothing follows the last prefix");
                if let Some(allowed) = allowed {
                    got.extend_from_slice(&chunk[..allowed.len]);
                    over = allowed.last;
                }
            }
            prop_assert_eq!(&got[..], expected);
            prop_assert_eq!(over, !all.is_empty() && cap.is_some_and(|cap| all.len() as u64 >= cap));
            prop_assert_eq!(stream.reached, over);

            let mut stream = StreamCap::new(false, cap);
            for chunk in &chunks {
                prop_assert!(stream.consume(chunk, u64::MAX), "nothing is streamed");
            }
            prop_assert_eq!((stream.reached, stream.truncated), (over, false));
            prop_assert_eq!(stream.take_text(), String::from_utf8_lossy(expected));
        }

        #[test]
        fn buffer_fits_its_room_and_drops_nothing_else(
            space in 0_u64..60,
            chunks in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 1..20),
                    "[a\"\\n\\x01é\u{1F980}]{1,8}".prop_map(String::into_bytes),
                ],
                0..8,
            ),
        ) {
            let mut stream = StreamCap::new(false, None);
            for chunk in &chunks {
                stream.consume(chunk, space);
            }
            let all = chunks.concat();
            let (counted, truncated) = (stream.encoded_bytes, stream.truncated);
            prop_assert_eq!(stream.reached, truncated);
            let text = stream.take_text();
            let encoded = serde_json::to_string(&text).unwrap().len() as u64 - 2;
            prop_assert!(encoded <= counted && counted <= space, "{encoded} {counted} {space}");
            if !truncated {
                prop_assert_eq!(&text, &*String::from_utf8_lossy(&all));
            }
            let (whole, size) = fit(&all, u64::MAX);
            prop_assert_eq!(whole, all.len());
            // A split character counts as at most four replacement characters.
            let split = 12 * chunks.len() as u64;
            prop_assert!(!truncated || size + split > space, "{size} {space}");
        }
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let mut stream = StreamCap::new(false, Some(5));
        stream.consume(b"a\xffb\xc3\xa9", u64::MAX);
        assert_eq!(stream.take_text(), "a\u{fffd}b\u{e9}");
        let mut stream = StreamCap::new(false, Some(4));
        stream.consume(b"a\xffb\xc3\xa9", u64::MAX);
        assert_eq!(
            stream.take_text(),
            "a\u{fffd}b\u{fffd}",
            "cut in the middle"
        );
    }
}

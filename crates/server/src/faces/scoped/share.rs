//! How much of a stream its client gets. Pure.

/// What a client has had of one stream.
#[derive(Debug)]
pub(crate) struct Share {
    /// How much it gets at all.
    cap: Option<u64>,
    taken: u64,
    /// Nothing more is for the client.
    reached: bool,
    /// What is told at the end, unless it is told when it comes,
    kept: Option<Vec<u8>>,
    /// how many bytes that takes in an answer at most,
    written: u64,
    /// and whether something of it was left out for want of room there.
    cut: bool,
}

/// What of some bytes is for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portion {
    /// So many of them, from the first on.
    pub(crate) len: usize,
    /// Nothing will follow, whatever is written.
    pub(crate) last: bool,
}

impl Share {
    /// Told when it comes.
    pub(crate) fn streamed(cap: Option<u64>) -> Self {
        Share {
            cap,
            taken: 0,
            reached: false,
            kept: None,
            written: 0,
            cut: false,
        }
    }

    /// Told at the end, all at once.
    pub(crate) fn kept(cap: Option<u64>) -> Self {
        Share {
            kept: Some(Vec::new()),
            ..Share::streamed(cap)
        }
    }

    /// Takes so many bytes; none if nothing more is for the client.
    pub(crate) fn take(&mut self, len: usize) -> Option<Portion> {
        if self.reached {
            return None;
        }
        let left = self.cap.map_or(u64::MAX, |cap| cap - self.taken);
        let taken = left.min(len as u64);
        self.taken += taken;
        // Whether more would have come isn't waited for.
        self.reached = taken == left && self.cap.is_some();
        Some(Portion {
            len: taken as usize,
            last: self.reached,
        })
    }

    /// Takes bytes that nobody is told of now: those for the end, and those
    /// that nobody gets. Says whether they were such. What is for the end may
    /// take so much room in its answer.
    pub(crate) fn absorb(&mut self, bytes: &[u8], room: u64) -> bool {
        if self.is_streamed() {
            return self.reached;
        }
        let portion = self.take(bytes.len());
        if let (Some(kept), Some(portion)) = (&mut self.kept, portion) {
            let bytes = &bytes[..portion.len];
            let (fitting, written) = fit(bytes, room.saturating_sub(self.written));
            // Where there is no memory for more, that is the cap.
            let kept = match kept.try_reserve(fitting) {
                Ok(()) => {
                    kept.extend_from_slice(&bytes[..fitting]);
                    fitting
                }
                Err(_) => 0,
            };
            self.written += written;
            if kept < bytes.len() {
                self.reached = true;
                self.cut = true;
            }
        }
        true
    }

    /// How much room what was kept takes in its answer.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether something was left out that the cap would have let through.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether nothing of it is told before the end any more.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_streamed() || self.reached
    }

    /// Whether the client had all that it may have.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached
    }

    /// What was kept for the end, as text. What isn't UTF-8 is replaced.
    pub(crate) fn take_text(&mut self) -> String {
        let kept = self.kept.as_mut().map(std::mem::take).unwrap_or_default();
        String::from_utf8(kept)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    fn is_streamed(&self) -> bool {
        self.kept.is_none()
    }
}

/// How many of these bytes fit where there is so much room for text in JSON,
/// and how much they take. A character in two pieces may count for more than
/// it takes, never for less.
fn fit(bytes: &[u8], room: u64) -> (usize, u64) {
    let (mut fitting, mut written) = (0, 0);
    for piece in bytes.utf8_chunks() {
        let whole = piece.valid().chars().map(|letter| {
            let takes = match letter {
                '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                '\0'..'\u{20}' => 6,
                other => other.len_utf8(),
            };
            (letter.len_utf8(), takes)
        });
        let broken = Some(piece.invalid().len()).filter(|length| *length > 0);
        let broken = broken.map(|length| (length, char::REPLACEMENT_CHARACTER.len_utf8()));
        for (length, takes) in whole.chain(broken) {
            if written + takes as u64 > room {
                return (fitting, written);
            }
            fitting += length;
            written += takes as u64;
        }
    }
    (fitting, written)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes come, the client gets the first of them, up to
        /// the cap, and learns of it with the last one it gets.
        #[test]
        fn the_first_bytes_up_to_the_cap(
            cap in proptest::option::of(0_u64..40),
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..8),
        ) {
            let all = chunks.concat();
            let expected = &all[..cap.map_or(all.len(), |cap| all.len().min(cap as usize))];
            let mut share = Share::streamed(cap);
            let mut got = Vec::new();
            let mut over = false;
            for chunk in &chunks {
                prop_assert_eq!(share.absorb(chunk, 0), over);
                let portion = share.take(chunk.len());
                prop_assert_eq!(portion.is_none(), over, "nothing follows the last one");
                if let Some(portion) = portion {
                    got.extend_from_slice(&chunk[..portion.len]);
                    over = portion.last;
                }
            }
            prop_assert_eq!(&got[..], expected);
            prop_assert_eq!(over, !all.is_empty() && cap.is_some_and(|cap| all.len() as u64 >= cap));
            prop_assert_eq!(share.is_reached(), over);

            let mut share = Share::kept(cap);
            for chunk in &chunks {
                prop_assert!(share.absorb(chunk, u64::MAX), "nothing is told before the end");
            }
            prop_assert_eq!((share.is_reached(), share.is_cut()), (over, false));
            prop_assert_eq!(share.take_text(), String::from_utf8_lossy(expected));
        }

        /// Whatever is written, it has its room, and nothing else is left out.
        #[test]
        fn what_is_kept_fits_into_its_answer(
            room in 0_u64..60,
            chunks in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 1..20),
                    "[a\"\\n\\x01é\u{1F980}]{1,8}".prop_map(String::into_bytes),
                ],
                0..8,
            ),
        ) {
            let mut share = Share::kept(None);
            for chunk in &chunks {
                share.absorb(chunk, room);
            }
            let all = chunks.concat();
            let (counted, cut) = (share.written(), share.is_cut());
            prop_assert_eq!(share.is_reached(), cut);
            let text = share.take_text();
            let written = serde_json::to_string(&text).unwrap().len() as u64 - 2;
            prop_assert!(written <= counted && counted <= room, "{written} {counted} {room}");
            if !cut {
                prop_assert_eq!(&text, &*String::from_utf8_lossy(&all));
            }
            let (whole, takes) = fit(&all, u64::MAX);
            prop_assert_eq!(whole, all.len());
            // A character in pieces counts for four replacements at most.
            let pieces = 12 * chunks.len() as u64;
            prop_assert!(!cut || takes + pieces > room, "{takes} {room}");
        }
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        let mut share = Share::kept(Some(5));
        share.absorb(b"a\xffb\xc3\xa9", u64::MAX);
        assert_eq!(share.take_text(), "a\u{fffd}b\u{e9}");
        let mut share = Share::kept(Some(4));
        share.absorb(b"a\xffb\xc3\xa9", u64::MAX);
        assert_eq!(share.take_text(), "a\u{fffd}b\u{fffd}", "cut in the middle");
    }
}

//! How much of a stream its client gets. Pure.

/// What a client has had of one stream.
#[derive(Debug)]
pub(crate) struct Share {
    /// How much it gets at all.
    cap: Option<u64>,
    taken: u64,
    /// Nothing more is for the client.
    reached: bool,
    /// What is told at the end, unless it is told when it comes.
    kept: Option<Vec<u8>>,
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
        }
    }

    /// Told at the end, all at once.
    pub(crate) fn kept(cap: u64) -> Self {
        Share {
            kept: Some(Vec::new()),
            ..Share::streamed(Some(cap))
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
    /// that nobody gets. Says whether they were such.
    pub(crate) fn absorb(&mut self, bytes: &[u8]) -> bool {
        if self.is_streamed() {
            return self.reached;
        }
        let portion = self.take(bytes.len());
        if let (Some(kept), Some(portion)) = (&mut self.kept, portion) {
            // Where there is no memory for more, that is the cap.
            match kept.try_reserve(portion.len) {
                Ok(()) => kept.extend_from_slice(&bytes[..portion.len]),
                Err(_) => self.reached = true,
            }
        }
        true
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
                prop_assert_eq!(share.absorb(chunk), over);
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

            let mut share = Share::kept(cap.unwrap_or(u64::MAX));
            for chunk in &chunks {
                prop_assert!(share.absorb(chunk), "nothing is told before the end");
            }
            prop_assert_eq!(share.is_reached(), over);
            prop_assert_eq!(share.take_text(), String::from_utf8_lossy(expected));
        }
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        let mut share = Share::kept(5);
        share.absorb(b"a\xffb\xc3\xa9");
        assert_eq!(share.take_text(), "a\u{fffd}b\u{e9}");
        let mut share = Share::kept(4);
        share.absorb(b"a\xffb\xc3\xa9");
        assert_eq!(share.take_text(), "a\u{fffd}b\u{fffd}", "cut in the middle");
    }
}

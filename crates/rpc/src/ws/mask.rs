//! Masking of client frames (RFC 6455, section 5.3).

use std::hash::{BuildHasher, RandomState};

/// A masking key. The zero key changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask(pub(crate) [u8; 4]);

impl Mask {
    /// XORs the payload with the key, in place. Masks and unmasks.
    pub(crate) fn apply(self, payload: &mut [u8]) {
        if self.0 == [0; 4] {
            return;
        }
        let mut wide = [0; 16];
        for (slot, byte) in wide.iter_mut().zip(self.0.iter().cycle()) {
            *slot = *byte;
        }
        let mut blocks = payload.chunks_exact_mut(16);
        for block in &mut blocks {
            for (byte, mask) in block.iter_mut().zip(wide) {
                *byte ^= mask;
            }
        }
        for (byte, mask) in blocks.into_remainder().iter_mut().zip(wide) {
            *byte ^= mask;
        }
    }
}

/// Generates masking keys that a page in a browser cannot predict (RFC 6455, section 10.3).
#[derive(Debug)]
pub(crate) struct MaskSource {
    key: RandomState,
    drawn: u64,
}

impl MaskSource {
    pub(crate) fn new() -> Self {
        MaskSource {
            key: RandomState::new(),
            drawn: 0,
        }
    }

    pub(crate) fn draw(&mut self) -> Mask {
        self.drawn += 1;
        let hash = self.key.hash_one(self.drawn).to_ne_bytes();
        Mask([hash[0], hash[1], hash[2], hash[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_twice_restores_the_bytes() {
        let plain: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mask = Mask([1, 2, 3, 250]);
        for len in [0, 1, 3, 4, 15, 16, 17, 31, 1000] {
            let mut bytes = plain[..len].to_vec();
            mask.apply(&mut bytes);
            for (i, byte) in bytes.iter().enumerate() {
                assert_eq!(*byte, plain[i] ^ mask.0[i % 4]);
            }
            mask.apply(&mut bytes);
            assert_eq!(bytes, plain[..len]);
        }
    }
}

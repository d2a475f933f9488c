//! Frame headers and masking (RFC 6455, sections 5.2 and 5.3).

use std::hash::{BuildHasher, RandomState};

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0x0,
            Opcode::Text => 0x1,
            Opcode::Binary => 0x2,
            Opcode::Close => 0x8,
            Opcode::Ping => 0x9,
            Opcode::Pong => 0xA,
        }
    }

    pub(crate) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// A received header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) last: bool,
    pub(crate) opcode: Opcode,
    pub(crate) mask: Option<Mask>,
    pub(crate) payload: u64,
    /// Size of the header itself.
    pub(crate) len: usize,
}

impl Header {
    /// Parses a header from the front of `bytes`. Returns `None` if more bytes are needed,
    /// and the reason as `Err` if the header is invalid.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err("reserved bits are set, but no extension was agreed on");
        }
        let opcode = Opcode::from_bits(first & 0x0F).ok_or("unknown opcode")?;
        let last = first & 0x80 != 0;
        let (payload, used) = match second & 0x7F {
            126 => match rest.first_chunk::<2>() {
                Some(len) => (u64::from(u16::from_be_bytes(*len)), 2),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(len) => (u64::from_be_bytes(*len), 8),
                None => return Ok(None),
            },
            len => (u64::from(len), 0),
        };
        if payload >> 63 != 0 {
            return Err("impossible frame length");
        }
        if opcode.is_control() && (!last || payload > 125) {
            return Err("a control frame is fragmented or too long");
        }
        let (mask, used) = if second & 0x80 == 0 {
            (None, used)
        } else {
            match rest[used..].first_chunk::<4>() {
                Some(mask) => (Some(Mask(*mask)), used + 4),
                None => return Ok(None),
            }
        };
        Ok(Some(Header {
            last,
            opcode,
            mask,
            payload,
            len: 2 + used,
        }))
    }
}

/// Appends the header of an unfragmented frame.
pub(crate) fn encode_header(out: &mut Vec<u8>, opcode: Opcode, len: u64, mask: Option<Mask>) {
    encode_part_header(out, opcode, true, len, mask);
}

/// Appends the header of a frame or fragment.
pub(crate) fn encode_part_header(
    out: &mut Vec<u8>,
    opcode: Opcode,
    last: bool,
    len: u64,
    mask: Option<Mask>,
) {
    out.push(if last { 0x80 } else { 0 } | opcode.bits());
    let masked = if mask.is_some() { 0x80 } else { 0 };
    match len {
        0..=125 => out.push(masked | len as u8),
        126..=0xFFFF => {
            out.push(masked | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
    if let Some(mask) = mask {
        out.extend_from_slice(&mask.0);
    }
}

/// A masking key. The zero key changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask(pub(crate) [u8; 4]);

impl Mask {
    /// Returns the key for the bytes of a payload from `offset` on.
    pub(crate) fn at_offset(self, offset: u64) -> Mask {
        let mut key = self.0;
        key.rotate_left((offset % 4) as usize);
        Mask(key)
    }

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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoded_header_parses_back(len in prop_oneof![0_u64..300, 65_530_u64..65_550, any::<u32>().prop_map(u64::from)], mask in proptest::option::of(any::<[u8; 4]>())) {
            let mut bytes = Vec::new();
            encode_header(&mut bytes, Opcode::Binary, len, mask.map(Mask));
            let header = Header::parse(&bytes).unwrap().unwrap();
            prop_assert_eq!(header, Header { last: true, opcode: Opcode::Binary, mask: mask.map(Mask), payload: len, len: bytes.len() });
            for cut in 0..bytes.len() {
                prop_assert_eq!(Header::parse(&bytes[..cut]).unwrap(), None);
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = Header::parse(&bytes);
        }
    }

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

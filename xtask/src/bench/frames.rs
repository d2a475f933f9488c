//! WebSocket frames, read in place from one large buffer to keep the client's cost per byte low.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

/// The most bytes per read.
const READ: usize = 256 * 1024;

/// The largest accepted frame.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// The mask of all sent frames. The protocol requires one; its value is irrelevant.
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Message,
    Close,
    Ping,
    Pong,
}

/// Reads the frames of a server.
pub(super) struct FrameReader<R> {
    io: R,
    buffer: Vec<u8>,
    /// The received and unprocessed part of the buffer.
    unread: Range<usize>,
}

impl<R: Read> FrameReader<R> {
    /// Creates a reader; `received` was read with the handshake.
    pub(super) fn new(io: R, received: &[u8]) -> Self {
        let mut buffer = received.to_vec();
        buffer.resize(received.len().max(2 * READ), 0);
        Self {
            io,
            buffer,
            unread: 0..received.len(),
        }
    }

    /// Returns true if a complete frame is buffered.
    pub(super) fn has_frame(&self) -> Result<bool> {
        let header = Header::parse(&self.buffer[self.unread.clone()])?;
        Ok(header.is_some_and(|header| header.frame() <= self.unread.len()))
    }

    /// Waits for the next frame. Returns the range of its payload, which [`payload`](Self::payload)
    /// accepts until the next call.
    pub(super) fn next(&mut self) -> Result<(Opcode, Range<usize>)> {
        loop {
            let header = Header::parse(&self.buffer[self.unread.clone()])?;
            if let Some(header) = header
                && header.frame() <= self.unread.len()
            {
                let start = self.unread.start;
                self.unread.start += header.frame();
                return Ok((header.opcode, start + header.len..start + header.frame()));
            }
            self.read(header.map_or(0, Header::frame))?;
        }
    }

    pub(super) fn payload(&self, place: Range<usize>) -> &[u8] {
        &self.buffer[place]
    }

    /// Reads available bytes, after making room for a frame of `frame` bytes.
    fn read(&mut self, frame: usize) -> Result<()> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        }
        let room = self.buffer.len() - self.unread.start;
        if room < frame || self.buffer.len() - self.unread.end < READ / 2 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.buffer.len() < frame + READ {
            self.buffer.resize(frame + READ, 0);
        }
        let until = self.buffer.len().min(self.unread.end + READ);
        let read = match self.io.read(&mut self.buffer[self.unread.end..until]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("the server sent nothing for too long")
            }
            read => read.context("reading from the server")?,
        };
        ensure!(read > 0, "the server closed the connection");
        self.unread.end += read;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Header {
    opcode: Opcode,
    /// The length of the header.
    len: usize,
    payload: usize,
}

impl Header {
    fn frame(self) -> usize {
        self.len + self.payload
    }

    /// Parses a header. Returns None if it is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(None);
        };
        let opcode = match first {
            0x81 | 0x82 => Opcode::Message,
            0x88 => Opcode::Close,
            0x89 => Opcode::Ping,
            0x8A => Opcode::Pong,
            _ => bail!("a frame begins with {first:#04x}, which this client doesn't know"),
        };
        let (len, payload) = match second {
            126 => match rest.first_chunk() {
                Some(length) => (4, u64::from(u16::from_be_bytes(*length))),
                None => return Ok(None),
            },
            127 => match rest.first_chunk() {
                Some(length) => (10, u64::from_be_bytes(*length)),
                None => return Ok(None),
            },
            0..126 => (2, u64::from(*second)),
            _ => bail!("the server masks its frames"),
        };
        let payload = usize::try_from(payload).unwrap_or(usize::MAX);
        ensure!(payload <= MAX_FRAME, "a frame of {payload} bytes");
        Ok(Some(Self {
            opcode,
            len,
            payload,
        }))
    }
}

/// Appends a masked client frame.
pub(super) fn append(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    out.push(match opcode {
        Opcode::Message => 0x81,
        Opcode::Close => 0x88,
        Opcode::Ping => 0x89,
        Opcode::Pong => 0x8A,
    });
    match payload.len() {
        len @ 0..126 => out.push(0x80 | len as u8),
        len @ 126..=0xFFFF => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns at most this many bytes per read.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(n);
            buffer[..n].copy_from_slice(now);
            self.0 = later;
            Ok(n)
        }
    }

    /// Builds an unmasked server frame.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        append(&mut frame, Opcode::Message, payload);
        let mask = frame.len() - payload.len() - 4;
        frame.truncate(mask);
        frame[1] &= 0x7F;
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn frames_of_all_sizes_are_read_in_any_pieces() {
        let payloads: Vec<Vec<u8>> = [0, 1, 125, 126, 65_535, 65_536, 700_000, 3, 90_000]
            .map(|len| (0..len).map(|at| (at % 251) as u8).collect())
            .to_vec();
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
        for (at_once, early) in [(1, 0), (4096, 1), (1 << 20, 200), (7777, 300_000)] {
            let io = Trickle(&stream[early..], at_once);
            let mut reader = FrameReader::new(io, &stream[..early]);
            for payload in &payloads {
                let (opcode, place) = reader.next().unwrap();
                let found = reader.payload(place);
                assert_eq!(opcode, Opcode::Message);
                assert!(found == payload, "{} bytes", payload.len());
            }
            assert!(!reader.has_frame().unwrap());
            assert!(reader.next().is_err());
        }
    }

    #[test]
    fn buffered_frame_is_reported() {
        let stream = [frame(b"one"), frame(b"two")].concat();
        let mut reader = FrameReader::new(Trickle(&stream[7..], 1), &stream[..7]);
        assert!(reader.has_frame().unwrap());
        reader.next().unwrap();
        assert!(!reader.has_frame().unwrap());
        let (_, place) = reader.next().unwrap();
        assert_eq!(reader.payload(place), b"two");
    }

    #[test]
    fn sent_frames_are_masked() {
        let mut out = Vec::new();
        append(&mut out, Opcode::Message, b"hello");
        assert_eq!(out[..2], [0x81, 0x85]);
        let plain: Vec<u8> = out[6..]
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(a, b)| a ^ b)
            .collect();
        assert_eq!(plain, b"hello");
    }
}

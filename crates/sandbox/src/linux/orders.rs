//! What the inner stage is told: everything about the program it becomes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::{Access, Level, Network};

/// A program and what it may do. Travels in a file without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) network: Network,
    /// Whether there are namespaces around.
    pub(super) level: Level,
    /// Where it starts.
    pub(super) cwd: PathBuf,
    /// Runs of strings that end in NUL.
    pub(super) candidates: Vec<u8>,
    /// Empty if there is no program to become.
    pub(super) argv: Vec<u8>,
    pub(super) env: Vec<u8>,
    /// What Landlock grants.
    pub(super) grants: Vec<(PathBuf, Access)>,
}

/// Says what it is, and of which form.
const MAGIC: &[u8; 4] = b"OSO1";

impl Orders {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(match self.network {
            Network::Restricted => 0,
            Network::Enabled => 1,
        });
        bytes.push(match self.level {
            Level::Namespaces => 0,
            Level::Landlock => 1,
        });
        let parts = [
            self.cwd.as_os_str().as_bytes(),
            &self.candidates,
            &self.argv,
            &self.env,
        ];
        for part in parts {
            put(&mut bytes, part);
        }
        for (path, access) in &self.grants {
            bytes.push(match access {
                Access::Read => 0,
                Access::Write => 1,
                Access::Deny => 2,
            });
            put(&mut bytes, path.as_os_str().as_bytes());
        }
        bytes
    }

    /// None if it is something else or was cut off.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let network = match take_byte(&mut rest)? {
            0 => Network::Restricted,
            1 => Network::Enabled,
            _ => return None,
        };
        let level = match take_byte(&mut rest)? {
            0 => Level::Namespaces,
            1 => Level::Landlock,
            _ => return None,
        };
        let cwd = path(take(&mut rest)?);
        let candidates = take(&mut rest)?.to_vec();
        let argv = take(&mut rest)?.to_vec();
        let env = take(&mut rest)?.to_vec();
        let mut grants = Vec::new();
        while !rest.is_empty() {
            let access = match take_byte(&mut rest)? {
                0 => Access::Read,
                1 => Access::Write,
                2 => Access::Deny,
                _ => return None,
            };
            grants.push((path(take(&mut rest)?), access));
        }
        Some(Self {
            network,
            level,
            cwd,
            candidates,
            argv,
            env,
            grants,
        })
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Orders {
        Orders {
            network: Network::Enabled,
            level: Level::Landlock,
            cwd: "/srv/project".into(),
            candidates: b"/usr/bin/a\0/bin/a\0".to_vec(),
            argv: b"-a\0b c\0\0".to_vec(),
            env: Vec::new(),
            grants: vec![
                ("/".into(), Access::Read),
                ("/srv".into(), Access::Write),
                ("/srv/x".into(), Access::Deny),
            ],
        }
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        assert_eq!(Orders::decode(&orders().encode()), Some(orders()));
    }

    #[test]
    fn what_is_cut_off_is_not_understood() {
        let mut plain = orders();
        plain.grants.clear();
        let bytes = plain.encode();
        for length in 0..bytes.len() {
            assert_eq!(Orders::decode(&bytes[..length]), None, "{length}");
        }
    }
}

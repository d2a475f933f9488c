//! The configuration of the helper: the program to execute and what it may do.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::encoding;
use crate::linux::mounts::{ExpectedMount, Mounts};
use crate::{Access, Identity, Level, Network};

/// The program to execute and what it may do. The server passes it in a memfd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct HelperConfig {
    #[serde(with = "NetworkDef")]
    pub(in crate::linux) network: Network,
    /// Whether the helper runs inside bubblewrap's namespaces.
    #[serde(with = "LevelDef")]
    pub(in crate::linux) level: Level,
    /// The mounts to make; none if bubblewrap does it or there are no namespaces.
    pub(in crate::linux) mount_setup: Option<MountSetup>,
    /// The working directory of the program.
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) cwd: PathBuf,
    /// Paths to try to execute, as NUL-terminated strings.
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) candidates: Vec<u8>,
    /// Arguments as NUL-terminated strings. If empty, the helper serves file operations instead of
    /// executing a program.
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) argv: Vec<u8>,
    /// Environment as NUL-terminated strings.
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) env: Vec<u8>,
    /// Mounts to verify before the program runs.
    pub(in crate::linux) expected_mounts: Vec<ExpectedMount>,
    /// Landlock rules.
    pub(in crate::linux) grants: Vec<Grant>,
}

/// The mounts to make, and the user and group of the helper afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct MountSetup {
    pub(in crate::linux) mounts: Mounts,
    pub(in crate::linux) user: u32,
    pub(in crate::linux) group: u32,
}

/// Landlock access at and below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct Grant {
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) path: PathBuf,
    #[serde(with = "AccessDef")]
    pub(in crate::linux) access: Access,
    /// The expected file, where no mount check verifies it.
    pub(in crate::linux) identity: Option<Identity>,
}

/// Encodes [`Network`] by variant; its own encoding is for JSON.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Network")]
enum NetworkDef {
    Restricted,
    Enabled,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Level")]
enum LevelDef {
    Namespaces,
    Landlock,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Access")]
enum AccessDef {
    Read,
    Write,
    Deny,
}

impl HelperConfig {
    pub(in crate::linux) fn encode(&self) -> io::Result<Vec<u8>> {
        encoding::encode(self)
    }

    /// Returns none if the bytes are no configuration of this version, or are truncated.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        encoding::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::Link;
    use crate::linux::mounts::{Expected, Mount, PlannedMount};

    const IDENTITY: Identity = Identity {
        device: 66,
        inode: u64::MAX,
    };

    fn host(identity: Option<Identity>, read_only: bool) -> Expected {
        Expected::Host {
            identity,
            read_only,
        }
    }

    fn expected(path: &str, expected: Expected) -> ExpectedMount {
        let path = path.into();
        ExpectedMount { path, expected }
    }

    fn grant(path: &str, access: Access, identity: Option<Identity>) -> Grant {
        Grant {
            path: path.into(),
            access,
            identity,
        }
    }

    fn config() -> HelperConfig {
        let mounts = [
            Mount::Writable,
            Mount::Readable,
            Mount::Device,
            Mount::HiddenDirectory,
            Mount::Traversable,
            Mount::HiddenFile,
            Mount::Empty,
        ];
        HelperConfig {
            network: Network::Enabled,
            level: Level::Landlock,
            mount_setup: Some(MountSetup {
                mounts: Mounts {
                    mounts: mounts
                        .map(|mount| PlannedMount {
                            path: "/srv/x".into(),
                            mount,
                        })
                        .into(),
                    links: vec![Link {
                        path: "/lib".into(),
                        target: OsStr::from_bytes(b"usr/\xff").into(),
                    }],
                },
                user: 1000,
                group: u32::MAX,
            }),
            cwd: OsStr::from_bytes(b"/srv/\xff").into(),
            candidates: b"/usr/bin/a\0/bin/a\0".to_vec(),
            argv: b"-a\0b c\0\0".to_vec(),
            env: Vec::new(),
            expected_mounts: vec![
                expected("/srv", host(Some(IDENTITY), false)),
                expected("/", host(None, true)),
                expected("/srv/x", Expected::Empty { mode: 0o555 }),
                expected("/srv/y", Expected::Null),
            ],
            grants: vec![
                grant("/", Access::Read, None),
                grant("/srv", Access::Write, Some(IDENTITY)),
                grant("/srv/x", Access::Deny, None),
            ],
        }
    }

    #[test]
    fn encoding_roundtrips() {
        let bytes = config().encode().expect("encode");
        assert_eq!(HelperConfig::decode(&bytes), Some(config()));
    }

    #[test]
    fn truncated_and_foreign_configurations_are_rejected() {
        let mut bytes = config().encode().expect("encode");
        for length in 0..bytes.len() {
            assert_eq!(HelperConfig::decode(&bytes[..length]), None, "{length}");
        }
        bytes.push(0);
        assert_eq!(HelperConfig::decode(&bytes), None);
        bytes.pop();
        bytes[0] += 1;
        assert_eq!(HelperConfig::decode(&bytes), None);
    }
}

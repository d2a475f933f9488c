//! The configuration of the helper: the program to execute and what it may do.

use std::ffi::OsString;
use std::path::PathBuf;

use outpost_process::Rlimits;
use serde::{Deserialize, Serialize};

use crate::linux::mounts::Mounts;
use crate::{Access, Identity, Level, Network};

/// The program to execute and what it may do. The server passes it in a memfd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct HelperConfig {
    pub(in crate::linux) network: Network,
    /// Ports of the loopback address on which the helper listens for the server.
    pub(in crate::linux) listen: Vec<u16>,
    /// Whether the helper runs inside bubblewrap's namespaces.
    pub(in crate::linux) level: Level,
    /// Whether the server makes the connections of the program, so that it can have unix sockets.
    /// Without a network only, and inside namespaces.
    pub(in crate::linux) supervised: bool,
    /// Limits of the program.
    pub(in crate::linux) rlimits: Rlimits,
    /// The number of the descriptor that is the program's stdin. Its stdout and stderr follow.
    pub(in crate::linux) stdin: i32,
    /// If the helper makes the mounts, the user and group that it becomes afterwards. None if bubblewrap
    /// makes them or there are no namespaces.
    pub(in crate::linux) user_after_mounts: Option<(u32, u32)>,
    /// The expected mounts, verified before the program runs, whether bubblewrap or the helper made
    /// them.
    pub(in crate::linux) mounts: Mounts,
    pub(in crate::linux) program: Program,
    /// Landlock rules.
    pub(in crate::linux) grants: Vec<Grant>,
}

/// A program to execute inside the sandbox. The strings are sequences of NUL-terminated strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Paths to try, in this order.
    #[serde(with = "crate::serde_as_bytes")]
    pub candidates: OsString,
    /// Arguments, starting with `argv[0]`. If empty, the helper serves requests on its channel instead
    /// of executing a program.
    #[serde(with = "crate::serde_as_bytes")]
    pub argv: OsString,
    /// The whole environment.
    #[serde(with = "crate::serde_as_bytes")]
    pub env: OsString,
    /// The working directory.
    #[serde(with = "crate::serde_as_bytes")]
    pub cwd: PathBuf,
    /// The number of descriptors that it gets, from [`PASSED_FD`](super::PASSED_FD) on.
    pub passed: i32,
}

impl Program {
    /// Returns the configuration of a helper that serves requests instead of executing a program.
    pub(in crate::linux) fn none() -> Self {
        Program {
            cwd: PathBuf::from("/"),
            ..Program::default()
        }
    }
}

/// Landlock access at and below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct Grant {
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) path: PathBuf,
    pub(in crate::linux) access: Access,
    /// The expected file, where no mount check verifies it.
    pub(in crate::linux) identity: Option<Identity>,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::Link;
    use crate::linux::helper::channel::{decode, encode};
    use crate::linux::mounts::{Mount, PlannedMount};

    const IDENTITY: Identity = Identity {
        device: 66,
        inode: u64::MAX,
    };

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
            listen: vec![1, u16::MAX],
            level: Level::Landlock,
            supervised: true,
            rlimits: Rlimits {
                open_files: Some((1024, u64::MAX)),
                ..Rlimits::default()
            },
            stdin: 6,
            user_after_mounts: Some((1000, u32::MAX)),
            mounts: Mounts {
                mounts: mounts
                    .map(|mount| PlannedMount {
                        path: "/srv/x".into(),
                        mount,
                        identity: (mount == Mount::Writable).then_some(IDENTITY),
                    })
                    .into(),
                links: vec![Link {
                    path: "/lib".into(),
                    target: OsStr::from_bytes(b"usr/\xff").into(),
                }],
            },
            program: Program {
                candidates: "/usr/bin/a\0/bin/a\0".into(),
                argv: "-a\0b c\0\0".into(),
                env: OsString::new(),
                cwd: OsStr::from_bytes(b"/srv/\xff").into(),
                passed: 1,
            },
            grants: vec![
                grant("/", Access::Read, None),
                grant("/srv", Access::Write, Some(IDENTITY)),
                grant("/srv/x", Access::Deny, None),
            ],
        }
    }

    #[test]
    fn encoding_roundtrips() {
        let bytes = encode(&config()).expect("encode");
        assert_eq!(decode::<HelperConfig>(&bytes).ok(), Some(config()));
    }

    #[test]
    fn truncated_and_foreign_configurations_are_rejected() {
        let mut bytes = encode(&config()).expect("encode");
        for length in 0..bytes.len() {
            assert!(
                decode::<HelperConfig>(&bytes[..length]).is_err(),
                "{length}"
            );
        }
        bytes.push(0);
        assert!(decode::<HelperConfig>(&bytes).is_err());
        bytes.pop();
        bytes[0] += 1;
        assert!(decode::<HelperConfig>(&bytes).is_err());
    }
}

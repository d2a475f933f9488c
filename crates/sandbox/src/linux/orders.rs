//! What the inner stage is told: everything about the program it becomes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::layout::{Mount, Mounts};
use super::place::{Place, Stands};
use crate::{Access, Identity, Level, Link, Network};

/// A program and what it may do. Travels in a file without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) network: Network,
    /// Whether there are namespaces around.
    pub(super) level: Level,
    /// What the stage has to mount first, unless somebody has done so.
    pub(super) scene: Option<Scene>,
    /// Where it starts.
    pub(super) cwd: PathBuf,
    /// Runs of strings that end in NUL.
    pub(super) candidates: Vec<u8>,
    /// Empty if there is no program to become.
    pub(super) argv: Vec<u8>,
    pub(super) env: Vec<u8>,
    /// What has to stand inside before there is a program.
    pub(super) places: Vec<Place>,
    /// What Landlock grants.
    pub(super) grants: Vec<Grant>,
}

/// What a stage mounts, and who it is again afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) mounts: Mounts,
    pub(super) user: u32,
    pub(super) group: u32,
}

/// What Landlock grants at and below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    /// Which thing it has to be, where nothing else has seen to that.
    pub(super) identity: Option<Identity>,
}

/// Says what it is, and of which form.
const MAGIC: &[u8; 4] = b"OSO3";

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
        bytes.push(u8::from(self.scene.is_some()));
        if let Some(scene) = &self.scene {
            put_scene(&mut bytes, scene);
        }
        let parts = [
            self.cwd.as_os_str().as_bytes(),
            &self.candidates,
            &self.argv,
            &self.env,
        ];
        for part in parts {
            put(&mut bytes, part);
        }
        bytes.extend((self.places.len() as u64).to_le_bytes());
        for Place { path, stands } in &self.places {
            put_stands(&mut bytes, *stands);
            put(&mut bytes, path.as_os_str().as_bytes());
        }
        for grant in &self.grants {
            bytes.push(match grant.access {
                Access::Read => 0,
                Access::Write => 1,
                Access::Deny => 2,
            });
            put_identity(&mut bytes, grant.identity);
            put(&mut bytes, grant.path.as_os_str().as_bytes());
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
        let scene = match take_byte(&mut rest)? {
            0 => None,
            1 => Some(take_scene(&mut rest)?),
            _ => return None,
        };
        let cwd = path(take(&mut rest)?);
        let candidates = take(&mut rest)?.to_vec();
        let argv = take(&mut rest)?.to_vec();
        let env = take(&mut rest)?.to_vec();
        let mut places = Vec::new();
        for _ in 0..take_number(&mut rest)? {
            let stands = take_stands(&mut rest)?;
            let path = path(take(&mut rest)?);
            places.push(Place { path, stands });
        }
        let mut grants = Vec::new();
        while !rest.is_empty() {
            let access = match take_byte(&mut rest)? {
                0 => Access::Read,
                1 => Access::Write,
                2 => Access::Deny,
                _ => return None,
            };
            let identity = take_identity(&mut rest)?;
            let path = path(take(&mut rest)?);
            grants.push(Grant {
                path,
                access,
                identity,
            });
        }
        Some(Self {
            network,
            level,
            scene,
            cwd,
            candidates,
            argv,
            env,
            places,
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

/// Each at its place in the form.
const MOUNTS: [Mount; 7] = [
    Mount::Writable,
    Mount::Readable,
    Mount::Device,
    Mount::HiddenDirectory,
    Mount::Passage,
    Mount::HiddenFile,
    Mount::Empty,
];

fn put_scene(bytes: &mut Vec<u8>, scene: &Scene) {
    bytes.extend(scene.user.to_le_bytes());
    bytes.extend(scene.group.to_le_bytes());
    let Mounts { over, links } = &scene.mounts;
    bytes.extend((over.len() as u64).to_le_bytes());
    for (path, mount) in over {
        let number = MOUNTS.iter().position(|one| one == mount);
        bytes.push(number.unwrap_or(MOUNTS.len()) as u8);
        put(bytes, path.as_os_str().as_bytes());
    }
    bytes.extend((links.len() as u64).to_le_bytes());
    for Link { path, target } in links {
        put(bytes, path.as_os_str().as_bytes());
        put(bytes, target.as_os_str().as_bytes());
    }
}

fn take_scene(rest: &mut &[u8]) -> Option<Scene> {
    let (user, group) = (take_small(rest)?, take_small(rest)?);
    let mut mounts = Mounts::default();
    for _ in 0..take_number(rest)? {
        let mount = *MOUNTS.get(usize::from(take_byte(rest)?))?;
        mounts.over.push((path(take(rest)?), mount));
    }
    for _ in 0..take_number(rest)? {
        let (path, target) = (path(take(rest)?), path(take(rest)?));
        mounts.links.push(Link { path, target });
    }
    Some(Scene {
        mounts,
        user,
        group,
    })
}

fn put_stands(bytes: &mut Vec<u8>, stands: Stands) {
    match stands {
        Stands::Host {
            identity,
            read_only,
        } => {
            bytes.push(u8::from(read_only));
            put_identity(bytes, identity);
        }
        Stands::Nothing { mode } => {
            bytes.push(2);
            bytes.extend(mode.to_le_bytes());
        }
        Stands::Null => bytes.push(3),
    }
}

fn take_stands(rest: &mut &[u8]) -> Option<Stands> {
    Some(match take_byte(rest)? {
        closed @ (0 | 1) => Stands::Host {
            identity: take_identity(rest)?,
            read_only: closed == 1,
        },
        2 => Stands::Nothing {
            mode: take_small(rest)?,
        },
        3 => Stands::Null,
        _ => return None,
    })
}

fn put_identity(bytes: &mut Vec<u8>, identity: Option<Identity>) {
    bytes.push(u8::from(identity.is_some()));
    if let Some(Identity { device, inode }) = identity {
        bytes.extend(device.to_le_bytes());
        bytes.extend(inode.to_le_bytes());
    }
}

/// The outer none is for what isn't understood.
#[expect(clippy::option_option, reason = "an identity may well be missing")]
fn take_identity(rest: &mut &[u8]) -> Option<Option<Identity>> {
    match take_byte(rest)? {
        0 => Some(None),
        1 => Some(Some(Identity {
            device: take_number(rest)?,
            inode: take_number(rest)?,
        })),
        _ => None,
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn take_small(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (part, after) = rest.split_at_checked(length)?;
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

    const KNOWN: Identity = Identity {
        device: 66,
        inode: u64::MAX,
    };

    fn host(identity: Option<Identity>, read_only: bool) -> Stands {
        Stands::Host {
            identity,
            read_only,
        }
    }

    fn place(path: &str, stands: Stands) -> Place {
        let path = path.into();
        Place { path, stands }
    }

    fn grant(path: &str, access: Access, identity: Option<Identity>) -> Grant {
        Grant {
            path: path.into(),
            access,
            identity,
        }
    }

    fn orders() -> Orders {
        Orders {
            network: Network::Enabled,
            level: Level::Landlock,
            scene: Some(Scene {
                mounts: Mounts {
                    over: MOUNTS.map(|mount| ("/srv/x".into(), mount)).into(),
                    links: vec![Link {
                        path: "/lib".into(),
                        target: "usr/lib".into(),
                    }],
                },
                user: 1000,
                group: u32::MAX,
            }),
            cwd: "/srv/project".into(),
            candidates: b"/usr/bin/a\0/bin/a\0".to_vec(),
            argv: b"-a\0b c\0\0".to_vec(),
            env: Vec::new(),
            places: vec![
                place("/srv", host(Some(KNOWN), false)),
                place("/", host(None, true)),
                place("/srv/x", Stands::Nothing { mode: 0o555 }),
                place("/srv/y", Stands::Null),
            ],
            grants: vec![
                grant("/", Access::Read, None),
                grant("/srv", Access::Write, Some(KNOWN)),
                grant("/srv/x", Access::Deny, None),
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

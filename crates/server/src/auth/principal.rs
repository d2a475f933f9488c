//! Principals: the names that connections speak for, and what each may do.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use outpost_engine::{LimitName, NotPermitted, PrincipalKey, ResourceLimits};
use outpost_protocol::{AccessScope, RpcError};

use crate::Peer;

/// Permissions of one principal, as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct PrincipalSettings {
    /// The permitted kinds of work.
    pub scopes: BTreeSet<AccessScope>,
    /// The name of the profile that is the minimum sandbox of its processes and file operations.
    pub sandbox: Option<String>,
    /// The name of the network policy that narrows the network of all its processes.
    pub network: Option<String>,
    /// If not empty, the directories below which it works.
    pub roots: Vec<Root>,
    /// Limits on what it uses.
    pub limits: PrincipalLimits,
}

/// A directory below which a principal works. Both paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The path in the configuration.
    pub named: PathBuf,
    /// The path without symbolic links, as of the start of the server.
    pub real: PathBuf,
}

/// Limits on what a principal uses at once. Absent members set no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrincipalLimits {
    /// Running processes.
    pub processes: Option<usize>,
    /// Sessions.
    pub sessions: Option<usize>,
    /// Connections.
    pub connections: Option<usize>,
    /// The most memory of each of its processes, and the default.
    pub memory_bytes: Option<u64>,
    /// The most CPUs of each of its processes, and the default.
    pub cpus: Option<f64>,
}

impl PrincipalLimits {
    /// Returns the limits of a process that asks for `requested`: each is at most that of the principal,
    /// which is the default.
    pub(crate) fn of_process(
        &self,
        requested: ResourceLimits,
    ) -> Result<ResourceLimits, NotPermitted> {
        let beyond = |name, max: String| Err(NotPermitted::Limit { name, max });
        if let (Some(asked), Some(max)) = (requested.memory_bytes, self.memory_bytes)
            && asked > max
        {
            return beyond(LimitName::MemoryBytes, max.to_string());
        }
        if let (Some(asked), Some(max)) = (requested.cpus, self.cpus)
            && asked > max
        {
            return beyond(LimitName::Cpus, max.to_string());
        }
        Ok(ResourceLimits {
            memory_bytes: requested.memory_bytes.or(self.memory_bytes),
            cpus: requested.cpus.or(self.cpus),
            ..requested
        })
    }
}

impl Default for PrincipalSettings {
    fn default() -> Self {
        let scopes = AccessScope::ALL.into_iter();
        PrincipalSettings {
            scopes: scopes
                .filter(|scope| *scope != AccessScope::Admin)
                .collect(),
            sandbox: None,
            network: None,
            roots: Vec::new(),
            limits: PrincipalLimits::default(),
        }
    }
}

/// The principals of the configuration, by name.
pub type Principals = BTreeMap<String, PrincipalSettings>;

/// The beginning of the names of local users.
const LOCAL_USER: &str = "uid:";

/// The entry for principals without one.
const DEFAULT: &str = "default";

/// A principal: a name and what it may do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Principal {
    pub(crate) name: String,
    /// The permissions of the principal, with the scopes of its token.
    pub(crate) settings: PrincipalSettings,
}

impl Principal {
    /// Returns the principal of an authenticated client. `narrowed` are the scopes of its token.
    pub(crate) fn authenticated(
        principals: &Principals,
        name: &str,
        narrowed: Option<&[AccessScope]>,
    ) -> Self {
        // The entry of a local user is not for a token that chose its name.
        let own = principals
            .get(name)
            .filter(|_| !name.starts_with(LOCAL_USER));
        let settings = own.or_else(|| principals.get(DEFAULT));
        let mut settings = settings.cloned().unwrap_or_default();
        if let Some(narrowed) = narrowed {
            settings.scopes.retain(|scope| narrowed.contains(scope));
        }
        Principal {
            name: name.to_owned(),
            settings,
        }
    }

    /// Returns the principal of a client that needs no token. The server's own user may do everything
    /// unless configured, on a unix socket also to the work of all principals. Only peer credentials prove
    /// it, so others never have the scope `admin`. Other users have the default.
    pub(crate) fn local(principals: &Principals, peer: Peer) -> Self {
        let name = match peer {
            Peer::User(uid) => format!("{LOCAL_USER}{uid}"),
            // On stdio, the user that started the server.
            _ => format!("{LOCAL_USER}{}", rustix::process::geteuid().as_raw()),
        };
        let mut settings = match (principals.get(&name), peer) {
            (Some(settings), _) => settings.clone(),
            (None, Peer::Owner) => PrincipalSettings {
                scopes: AccessScope::ALL.into(),
                ..PrincipalSettings::default()
            },
            (None, Peer::User(_)) => principals.get(DEFAULT).cloned().unwrap_or_default(),
            (None, _) => PrincipalSettings::default(),
        };
        if peer != Peer::Owner {
            settings.scopes.remove(&AccessScope::Admin);
        }
        Principal { name, settings }
    }

    /// Whether local users have permissions of their own.
    pub(crate) fn tells_local_users_apart(principals: &Principals) -> bool {
        principals.keys().any(|name| name.starts_with(LOCAL_USER))
    }

    /// The peer that its resources are counted for, and that may resume its sessions.
    pub(crate) fn peer(&self) -> Peer {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.name.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest.as_ref()[..16]);
        Peer::Principal(PrincipalKey(key))
    }

    /// Whether it may do this kind of work.
    pub(crate) fn has(&self, scope: AccessScope) -> bool {
        self.settings.scopes.contains(&scope)
    }

    /// Checks that it may do this kind of work.
    pub(crate) fn require(&self, scope: AccessScope) -> Result<(), RpcError> {
        if self.has(scope) {
            return Ok(());
        }
        Err(RpcError::out_of_scope(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_without_an_entry_has_the_default() {
        let mut principals = Principals::new();
        let ci = Principal::authenticated(&principals, "ci", None);
        assert!(
            ci.has(AccessScope::Exec)
                && ci.has(AccessScope::FilesWrite)
                && !ci.has(AccessScope::Admin)
        );

        let read_only = PrincipalSettings {
            scopes: [AccessScope::FilesRead].into(),
            ..PrincipalSettings::default()
        };
        principals.insert(DEFAULT.to_owned(), read_only);
        let ci = Principal::authenticated(&principals, "ci", None);
        assert!(ci.has(AccessScope::FilesRead) && !ci.has(AccessScope::Exec));
        let error = ci.require(AccessScope::Exec).unwrap_err();
        assert_eq!(error.message, "not permitted: exec is required");

        principals.insert("ci".to_owned(), PrincipalSettings::default());
        let ci = Principal::authenticated(&principals, "ci", None);
        assert!(ci.has(AccessScope::Exec));

        principals.insert("uid:7".to_owned(), PrincipalSettings::default());
        let posing = Principal::authenticated(&principals, "uid:7", None);
        assert!(!posing.has(AccessScope::Exec));
    }

    #[test]
    fn limits_of_a_principal_are_the_default_and_the_maximum() {
        let limits = PrincipalLimits {
            memory_bytes: Some(100),
            cpus: Some(2.0),
            ..PrincipalLimits::default()
        };
        let asked = |memory_bytes, cpus| {
            let requested = ResourceLimits {
                memory_bytes,
                cpus,
                open_files: Some(9),
                ..ResourceLimits::default()
            };
            let limits = limits.of_process(requested);
            let limits = limits.map_err(|error| error.to_string())?;
            assert_eq!(limits.open_files, Some(9));
            Ok::<_, String>((limits.memory_bytes, limits.cpus))
        };
        assert_eq!(asked(None, None), Ok((Some(100), Some(2.0))));
        assert_eq!(asked(Some(100), Some(0.5)), Ok((Some(100), Some(0.5))));
        let error = asked(Some(101), None).unwrap_err();
        assert_eq!(
            error,
            "not permitted: limits.memoryBytes may be 100 at most"
        );
        let error = asked(None, Some(2.1)).unwrap_err();
        assert_eq!(error, "not permitted: limits.cpus may be 2 at most");
    }

    #[test]
    fn token_narrows_its_principal() {
        let principals = Principals::new();
        let narrowed = [AccessScope::Exec, AccessScope::Admin];
        let ci = Principal::authenticated(&principals, "ci", Some(&narrowed));
        assert!(ci.has(AccessScope::Exec) && !ci.has(AccessScope::Http));
        assert!(!ci.has(AccessScope::Admin), "a token grants nothing");
    }

    #[test]
    fn owner_may_do_everything_unless_configured() {
        let mut principals = Principals::new();
        let owner = Principal::local(&principals, Peer::Owner);
        assert!(AccessScope::ALL.iter().all(|scope| owner.has(*scope)));
        let unverified = Principal::local(&principals, Peer::Unverified);
        assert!(unverified.has(AccessScope::Exec) && !unverified.has(AccessScope::Admin));
        let read_only = PrincipalSettings {
            scopes: [AccessScope::FilesRead].into(),
            ..PrincipalSettings::default()
        };
        let may_exec = |principals: &Principals, peer| {
            Principal::local(principals, peer).has(AccessScope::Exec)
        };
        let other = Peer::User(u32::MAX - 1);
        assert!(may_exec(&principals, other));
        principals.insert(DEFAULT.to_owned(), read_only.clone());
        assert!(!may_exec(&principals, other));
        assert!(
            may_exec(&principals, Peer::Unverified),
            "it is the own user"
        );
        principals.insert(owner.name, read_only);
        let uid = rustix::process::geteuid().as_raw();
        for peer in [Peer::Owner, Peer::Unverified, Peer::User(uid)] {
            assert!(!may_exec(&principals, peer));
        }
        let name = format!("uid:{}", u32::MAX - 1);
        principals.insert(name, PrincipalSettings::default());
        assert!(may_exec(&principals, other));
    }

    #[test]
    fn other_local_users_have_their_own_entry_and_are_no_admins() {
        let settings = |scopes: &[AccessScope]| PrincipalSettings {
            scopes: scopes.iter().copied().collect(),
            ..PrincipalSettings::default()
        };
        let own = rustix::process::geteuid().as_raw();
        let principals = Principals::from([
            (format!("uid:{own}"), settings(&AccessScope::ALL)),
            ("uid:4000000".to_owned(), settings(&[AccessScope::Watch])),
        ]);
        assert!(Principal::tells_local_users_apart(&principals));
        assert!(Principal::local(&principals, Peer::Owner).has(AccessScope::Admin));
        let verified_by_socket = Principal::local(&principals, Peer::User(own));
        assert!(verified_by_socket.has(AccessScope::Exec));
        assert!(!verified_by_socket.has(AccessScope::Admin));
        let other = Principal::local(&principals, Peer::User(4_000_000));
        assert!(other.has(AccessScope::Watch) && !other.has(AccessScope::Exec));
        let by_address = Principal::local(&principals, Peer::from_address([127, 0, 0, 1].into()));
        assert!(!by_address.has(AccessScope::Admin));
    }
}

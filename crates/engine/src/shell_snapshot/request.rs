//! Requests for shell snapshots.

use std::{collections::BTreeSet, ffi::OsString};

use outpost_types::{EnvPolicy, StartParams};

use super::{SnapshotKey, shell::ShellKind};
use crate::Start;

/// The longest scope, in bytes.
const MAX_SCOPE_BYTES: usize = 256;

/// The option of a login shell that runs a command.
const LOGIN_OPTION: &str = "-lc";

/// A start whose command is to run with the snapshot of its login shell.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    scope_id: String,
    pub(super) kind: ShellKind,
    env_policy: Option<EnvPolicy>,
    /// Variables that the client has set. They win over those of the profile.
    pub(super) set_names: BTreeSet<OsString>,
}

/// A snapshot that cannot be requested from any executor. The text is part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSnapshot {
    /// The scope is empty or too long.
    #[error("shell snapshot scope must be non-empty and at most {MAX_SCOPE_BYTES} bytes")]
    Scope,
    /// The state of this shell cannot be captured.
    #[error("shell snapshots are unsupported for shell `{0}`")]
    Shell(String),
}

impl SnapshotRequest {
    /// Checks the request of a start. Returns `None` if there is none, or if the start does not run a
    /// command in that login shell.
    pub(crate) fn from_params(params: &StartParams) -> Result<Option<Self>, InvalidSnapshot> {
        let Some(snapshot) = &params.shell_snapshot else {
            return Ok(None);
        };
        if !(1..=MAX_SCOPE_BYTES).contains(&snapshot.scope_id.len()) {
            return Err(InvalidSnapshot::Scope);
        }
        let kind = ShellKind::named(&snapshot.shell.name);
        let kind = kind.ok_or_else(|| InvalidSnapshot::Shell(snapshot.shell.name.clone()))?;
        let applies = match &params.argv[..] {
            [program, option, _, ..] => *program == snapshot.shell.path && option == LOGIN_OPTION,
            _ => false,
        };
        let policy = params.env_policy.as_ref();
        let set = policy.into_iter().flat_map(|policy| policy.set.keys());
        Ok(applies.then(|| SnapshotRequest {
            scope_id: snapshot.scope_id.clone(),
            kind,
            env_policy: params.env_policy.clone(),
            set_names: params.env.keys().chain(set).map(OsString::from).collect(),
        }))
    }

    /// Returns the key of the snapshot.
    pub(crate) fn key(&self, start: &Start) -> SnapshotKey {
        SnapshotKey {
            scope_id: self.scope_id.clone(),
            kind: self.kind,
            program: start.argv.first().cloned().unwrap_or_default(),
            cwd: start.cwd.clone(),
            env_policy: self.env_policy.clone(),
            policy: start.policy().cloned(),
            limits: start.limits,
        }
    }

    /// Returns the arguments of the shell that prints its state.
    pub(crate) fn capturing_argv(&self, start: &Start, marker: &super::Marker) -> Vec<String> {
        let program = start.argv.first().cloned().unwrap_or_default();
        let script = self.kind.capture_script(marker);
        vec![program, LOGIN_OPTION.to_owned(), script]
    }
}

//! What a command is confined to: what its call says, or else the server's default.

use std::path::Path;

use outpost_engine::sandbox::{
    Network, Refusal,
    policy::{Policy, Profiles, Workspace},
};
use outpost_protocol::{CommandParams, RpcError, SandboxPolicy};

/// Whether at most one of the two ways to say it is used.
pub(super) fn check_pair(params: &CommandParams) -> Result<(), RpcError> {
    if params.sandbox_policy.is_some() && params.permission_profile.is_some() {
        return Err(RpcError::invalid_request(
            "`permissionProfile` cannot be combined with `sandboxPolicy`",
        ));
    }
    Ok(())
}

/// Who said what a command is confined to, and so what is wrong if that can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The call, with a policy of its own.
    Policy,
    /// The call, by the name of a profile, or the configuration.
    Profile,
}

/// What a command in this directory is confined to; nothing for full access.
pub(super) fn policy(
    params: &CommandParams,
    cwd: &Path,
    profiles: &Profiles,
) -> Result<(Said, Option<Policy>), RpcError> {
    if let Some(policy) = &params.sandbox_policy {
        return Ok((Said::Policy, of_policy(policy, cwd)));
    }
    let name = params.permission_profile.as_ref();
    let policy = profiles.policy(name.unwrap_or(&profiles.default), cwd);
    let policy = policy.map_err(|error| Said::Profile.invalid(&error))?;
    Ok((Said::Profile, policy))
}

impl Said {
    /// Why a command that was to be confined did not start.
    pub(super) fn refusal(self, refusal: &Refusal) -> RpcError {
        self.invalid(refusal)
    }

    fn invalid(self, why: &dyn std::error::Error) -> RpcError {
        let what = match self {
            Said::Policy => "sandbox policy",
            Said::Profile => "permission profile",
        };
        RpcError::invalid_request(format!("invalid {what}: {why}"))
    }
}

fn network(granted: bool) -> Network {
    match granted {
        true => Network::Enabled,
        false => Network::Restricted,
    }
}

fn of_policy(policy: &SandboxPolicy, cwd: &Path) -> Option<Policy> {
    match policy {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => None,
        SandboxPolicy::ReadOnly { network_access } => Some(Policy {
            network: network(*network_access),
            ..Policy::read_only(cwd)
        }),
        SandboxPolicy::WorkspaceWrite {
            writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } => {
            let workspace = Workspace {
                writable_roots: writable_roots
                    .iter()
                    .map(|root| root.as_path().to_owned())
                    .collect(),
                network_access: *network_access,
                exclude_tmpdir: *exclude_tmpdir_env_var,
                exclude_slash_tmp: *exclude_slash_tmp,
            };
            Some(workspace.policy(cwd))
        }
    }
}

//! Sandbox policy of a command: from its params, or else the server's default.

use std::path::Path;

use outpost_engine::sandbox::{
    Network, SandboxError,
    policy::{Policy, Profiles, Workspace},
};
use outpost_protocol::{CommandParams, ErrorKind, RpcError, SandboxPolicy};

/// Checks that the params have at most one of `sandboxPolicy` and `permissionProfile`.
pub(super) fn check_pair(params: &CommandParams) -> Result<(), RpcError> {
    if params.sandbox_policy.is_some() && params.permission_profile.is_some() {
        return Err(RpcError::invalid_request(
            "`permissionProfile` cannot be combined with `sandboxPolicy`",
        ));
    }
    Ok(())
}

/// Source of a command's sandbox policy, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicySource {
    /// `sandboxPolicy` of the request.
    Policy,
    /// A named profile, from the request or the configuration.
    Profile,
}

/// Returns the policy for a command in `cwd`; `None` for full access.
pub(super) fn policy(
    params: &CommandParams,
    cwd: &Path,
    profiles: &Profiles,
) -> Result<(PolicySource, Option<Policy>), RpcError> {
    if let Some(policy) = &params.sandbox_policy {
        return Ok((PolicySource::Policy, convert(policy, cwd)));
    }
    let name = params.permission_profile.as_ref();
    let policy = profiles.policy(name.unwrap_or(&profiles.default), cwd);
    let policy = policy.map_err(|error| PolicySource::Profile.invalid(&error))?;
    Ok((PolicySource::Profile, policy))
}

impl PolicySource {
    /// Returns the error for a sandbox that cannot be enforced.
    pub(super) fn start_error(self, error: &SandboxError) -> RpcError {
        self.invalid(error)
    }

    fn invalid(self, error: &dyn std::error::Error) -> RpcError {
        let what = match self {
            PolicySource::Policy => "sandbox policy",
            PolicySource::Profile => "permission profile",
        };
        RpcError::invalid_request(format!("invalid {what}: {error}")).with_kind(ErrorKind::Sandbox)
    }
}

fn network(granted: bool) -> Network {
    if granted {
        Network::Enabled
    } else {
        Network::Restricted
    }
}

fn convert(policy: &SandboxPolicy, cwd: &Path) -> Option<Policy> {
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

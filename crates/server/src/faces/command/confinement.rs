//! What a command is to be confined to. Nothing can be confined yet, so whoever
//! asks for it is refused: fail closed.

use outpost_protocol::{CommandParams, RpcError, SandboxPolicy};

/// The profile that confines to nothing.
const FULL_ACCESS: &str = ":danger-full-access";
/// Profiles that everybody knows.
const BUILT_IN: [&str; 2] = [":read-only", ":workspace"];

/// Whether at most one of the two ways to say it is used.
pub(super) fn check_pair(params: &CommandParams) -> Result<(), RpcError> {
    if params.sandbox_policy.is_some() && params.permission_profile.is_some() {
        return Err(RpcError::invalid_request(
            "`permissionProfile` cannot be combined with `sandboxPolicy`",
        ));
    }
    Ok(())
}

/// Whether the command may run as it is, without a sandbox of ours.
pub(super) fn check(params: &CommandParams) -> Result<(), RpcError> {
    match (&params.sandbox_policy, params.permission_profile.as_deref()) {
        (Some(policy), _) => check_policy(policy),
        (None, Some(profile)) => check_profile(profile),
        (None, None) => Ok(()),
    }
}

fn check_policy(policy: &SandboxPolicy) -> Result<(), RpcError> {
    match policy {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => Ok(()),
        SandboxPolicy::ReadOnly | SandboxPolicy::WorkspaceWrite { .. } => {
            Err(RpcError::invalid_request(format!(
                "invalid sandbox policy: sandbox intent cannot be enforced on this executor: {} is not supported by this version",
                policy.name()
            )))
        }
    }
}

fn check_profile(profile: &str) -> Result<(), RpcError> {
    if profile == FULL_ACCESS {
        return Ok(());
    }
    let problem = if BUILT_IN.contains(&profile) {
        format!(
            "sandbox intent cannot be enforced on this executor: {profile} is not supported by this version"
        )
    } else {
        let shown: String = profile.chars().take(100).collect();
        format!("there is no profile {}", serde_json::Value::from(shown))
    };
    Err(RpcError::invalid_request(format!(
        "invalid permission profile: {problem}"
    )))
}

//! What a file operation is to be confined to. Nothing can be confined yet, so
//! whoever asks for it is refused: fail closed.

use outpost_protocol::{Permissions, RpcError, SandboxParams};

/// Whether the operation may run as it is, without a sandbox of ours.
pub(super) fn check(sandbox: Option<&SandboxParams>) -> Result<(), RpcError> {
    match sandbox.map(|sandbox| &sandbox.permissions) {
        None | Some(Permissions::Disabled | Permissions::External) => Ok(()),
        Some(Permissions::Managed { .. }) => Err(RpcError::invalid_params(
            "sandbox intent cannot be enforced on this executor: managed permissions are not supported by this version",
        )),
    }
}

//! The command dialect: `command/exec` responds at the exit.

use std::{path::Path, sync::Arc};

use outpost_engine::{
    NetworkRequest, Process, Start, StartError,
    sandbox::{
        Network,
        policy::{Policy, Workspace},
    },
};
use outpost_protocol::{
    CommandParams, CommandResizeParams, CommandTerminateParams, CommandWriteParams, Empty,
    ErrorKind, Override, RpcError, SandboxPolicy,
};
use outpost_rpc::MemoryCharge;

use super::{
    ConnectionSession,
    dialect::{COMMAND, MAX_SCOPED_NAME_BYTES},
    process_reporter::{ExitMessage, Output},
};
use crate::{connection::Reply, convert};

/// Starts a command. The response follows its exit and its streamed output. `name` is its
/// id within the session.
pub(crate) async fn exec(
    session: Arc<ConnectionSession>,
    name: String,
    params: CommandParams,
    reply: Reply,
) {
    let started = try_exec(&session, name, params).await;
    if let Some(((process, output), reply)) = reply.accept(started) {
        session.report(&process, output, ExitMessage::Command(reply));
    }
}

async fn try_exec(
    session: &ConnectionSession,
    name: String,
    params: CommandParams,
) -> Result<(Process, Output), RpcError> {
    let server = &session.connection.server;
    let settings = &server.settings;
    check(&params)?;
    let stdio = COMMAND.stdio(params.tty, params.stream_stdin, params.size)?;
    let millis = Override::switched(params.timeout_ms, params.disable_timeout);
    let timeout = COMMAND.timeout(millis, settings)?;
    let cap = Override::switched(params.output_bytes_cap, params.disable_output_cap);
    let output = Output {
        streamed: params.tty || params.stream_stdout_stderr,
        cap: cap.or(settings.output_bytes_cap),
    };
    let connection = &session.connection;
    let info = connection.environment_info();
    let server_cwd = info.cwd.as_path();
    let cwd = params.cwd.as_ref();
    let cwd = cwd.map_or_else(|| server_cwd.to_owned(), |cwd| server_cwd.join(cwd));
    let profiles = &settings.profiles;
    let mut network_policy = None;
    let (sandbox, source) = match (&params.sandbox_policy, &params.permission_profile) {
        (Some(policy), _) => (policy_of(policy, &cwd), "sandbox policy"),
        // The sandbox of the principal takes the place of the default profile.
        (None, None) if connection.confines_all() => (None, "permission profile"),
        (None, name) => {
            let source = "permission profile";
            let name = name.as_ref().unwrap_or(&profiles.default);
            let policy = profiles.policy(name, &cwd);
            let policy = policy.map_err(|error| invalid_sandbox(source, &error))?;
            network_policy = profiles.network_policy(name);
            (policy, source)
        }
    };
    let names_one = params.sandbox_policy.is_some() || params.permission_profile.is_some();
    let allowed = connection.check_unsandboxed(names_one && sandbox.is_none());
    allowed.map_err(convert::not_permitted)?;
    let policies = &settings.network_policies;
    let network = match (&params.network, network_policy) {
        (Some(requested), _) => policies.requested(requested).map(Some),
        (None, Some(name)) => policies.named(name).map(Some),
        (None, None) => Ok(None),
    };
    let network = network.map_err(|invalid| RpcError::invalid_params(invalid.to_string()))?;
    let env = &server.host.environment;
    let start = Start {
        id: name,
        argv: params.command,
        cwd,
        env: env.for_child(Some(&settings.command_env), params.env),
        sandbox,
        network: network.map(NetworkRequest::of_rules),
        stdio,
        timeout,
        limits: params.limits.unwrap_or_default(),
        ..session.start_defaults()
    };
    let process = session.start(start).await.map_err(|error| match &error {
        StartError::Sandbox(sandbox) if error.kind() == ErrorKind::Sandbox => {
            invalid_sandbox(source, sandbox)
        }
        other => COMMAND.start_error(other),
    })?;
    Ok((process, output))
}

fn check(params: &CommandParams) -> Result<(), RpcError> {
    let invalid_request = |message: &str| Err(RpcError::invalid_request(message));
    let invalid_params = |message: &str| Err(RpcError::invalid_params(message));
    if params.sandbox_policy.is_some() && params.permission_profile.is_some() {
        return invalid_request("`permissionProfile` cannot be combined with `sandboxPolicy`");
    }
    if params.command.is_empty() {
        return invalid_request("command must not be empty");
    }
    if params.disable_timeout && params.timeout_ms.is_some() {
        return invalid_params("command/exec cannot set both timeoutMs and disableTimeout");
    }
    if params.disable_output_cap && params.output_bytes_cap.is_some() {
        return invalid_params("command/exec cannot set both outputBytesCap and disableOutputCap");
    }
    match &params.process_id {
        None if params.tty || params.stream_stdin || params.stream_stdout_stderr => {
            invalid_request("command/exec tty or streaming requires a client-supplied processId")
        }
        None => Ok(()),
        Some(id) => convert::check_length("processId", id, MAX_SCOPED_NAME_BYTES),
    }
}

/// Returns the error for a sandbox that is invalid or cannot be enforced. `source` is the
/// origin of its policy.
fn invalid_sandbox(source: &str, error: &dyn std::error::Error) -> RpcError {
    RpcError::invalid_request(format!("invalid {source}: {error}")).with_kind(ErrorKind::Sandbox)
}

/// Returns the policy for a command in `cwd`; `None` for full access.
fn policy_of(policy: &SandboxPolicy, cwd: &Path) -> Option<Policy> {
    match policy {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => None,
        SandboxPolicy::ReadOnly { network_access } => Some(Policy {
            network: if *network_access {
                Network::Enabled
            } else {
                Network::Restricted
            },
            ..Policy::read_only(cwd)
        }),
        SandboxPolicy::WorkspaceWrite {
            writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } => {
            let roots = writable_roots.iter().map(|root| root.as_path().to_owned());
            let workspace = Workspace {
                writable_roots: roots.collect(),
                network_access: *network_access,
                exclude_tmpdir: *exclude_tmpdir_env_var,
                exclude_slash_tmp: *exclude_slash_tmp,
            };
            Some(workspace.policy(cwd))
        }
    }
}

/// Writes to stdin. The bytes keep `memory`.
pub(crate) async fn write(
    session: Arc<ConnectionSession>,
    params: CommandWriteParams,
    memory: Option<MemoryCharge>,
) -> Result<Empty, RpcError> {
    let (name, delta) = (&params.process_id, params.delta_base64);
    let close = params.close_stdin;
    session.write(&COMMAND, name, delta, close, memory).await
}

/// Resizes the terminal.
pub(crate) async fn resize(
    session: Arc<ConnectionSession>,
    params: CommandResizeParams,
) -> Result<Empty, RpcError> {
    session
        .resize(&COMMAND, &params.process_id, params.size)
        .await
}

/// Kills a command.
pub(crate) async fn terminate(
    session: Arc<ConnectionSession>,
    params: CommandTerminateParams,
) -> Result<Empty, RpcError> {
    session.kill(&COMMAND, &params.process_id).await
}

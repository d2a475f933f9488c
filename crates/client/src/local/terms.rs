//! What a start means to the engine.

use std::time::Duration;

use outpost_engine as engine;
use outpost_engine::{Inherit as EngineInherit, ServerEnvironment, Terminal};
use outpost_protocol::{EnvPolicy, Inherit, StartParams};

use super::confinement;

/// The size of a terminal that nobody gave one.
const DEFAULT_SIZE: engine::Size = engine::Size { rows: 24, cols: 80 };

/// The start of a process as the engine is asked for it.
pub(super) fn start_of(environment: &ServerEnvironment, params: StartParams) -> engine::Start {
    let policy = params.env_policy.map(policy_of);
    let env = params.env.into_iter();
    let env = env.map(|(name, value)| (name, Some(value))).collect();
    let sandbox = params.sandbox.as_ref();
    engine::Start {
        sandbox: sandbox.and_then(|wish| confinement::policy(wish, params.cwd.as_path())),
        env: environment.for_child(policy.as_ref(), env),
        id: params.process_id,
        argv: params.argv,
        arg0: params.arg0,
        cwd: params.cwd.into_path(),
        terminal: match params.size {
            Some(size) => Terminal::Pty(engine::Size {
                rows: size.rows,
                cols: size.cols,
            }),
            None if params.tty => Terminal::Pty(DEFAULT_SIZE),
            None => Terminal::Pipes {
                stdin: params.pipe_stdin,
            },
        },
        metadata: params.metadata.unwrap_or_default(),
        timeout: params.timeout_ms.map(Duration::from_millis),
        retain_bytes: params
            .retain_bytes
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        kill_grace: Duration::from_millis(params.kill_grace_ms.unwrap_or(0)),
        drain: None,
    }
}

fn policy_of(policy: EnvPolicy) -> engine::EnvPolicy {
    engine::EnvPolicy {
        inherit: match policy.inherit {
            Inherit::All => EngineInherit::All,
            Inherit::Core => EngineInherit::Core,
            Inherit::None => EngineInherit::None,
        },
        ignore_default_excludes: policy.ignore_default_excludes,
        exclude: policy.exclude,
        set: policy.set,
        include_only: policy.include_only,
    }
}

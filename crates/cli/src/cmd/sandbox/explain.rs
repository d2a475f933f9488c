//! `outpost sandbox --explain`.

use std::{io, path::PathBuf, process::ExitCode};

use outpost_engine::sandbox::{
    HostSupport, Level, Mounter, Network, Plan,
    planning::{ChildPaths, HostFileSystem, PlanLimits, plan},
};

use super::policy::SandboxRequest;
use crate::{
    args::Sandbox,
    cmd::confine,
    render::{
        explanation::{Explanation, Layer},
        out,
        style::Styler,
    },
};

/// Prints the plan and the enforcement layers. The exit code tells whether it can be enforced here.
pub(super) fn explain(
    args: &Sandbox,
    request: &SandboxRequest,
    level: Level,
) -> anyhow::Result<ExitCode> {
    let tmpdir = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let tmpdir = tmpdir.map(PathBuf::from);
    let context = ChildPaths {
        cwd: &request.cwd,
        tmpdir: tmpdir.as_deref(),
    };
    let plan = match &request.sandbox {
        None => None,
        Some(sandbox) => Some(plan(
            sandbox.policy(),
            &context,
            &HostFileSystem,
            &PlanLimits::default(),
        )?),
    };
    let (layers, unenforceable) = match &plan {
        None => (Vec::new(), None),
        Some(plan) => match confine::sandbox(level).preflight() {
            Ok(support) => (layers(plan, &support, level), None),
            Err(reason) => (Vec::new(), Some(reason.to_string())),
        },
    };
    let explanation = Explanation {
        profile: &request.profile,
        cwd: &request.cwd,
        plan: plan.as_ref(),
        level,
        layers,
        unenforceable,
    };
    if args.json {
        out::lines([format!("{:#}", explanation.json())])?;
    } else {
        out::lines(explanation.lines(out::width(), Styler::on(&io::stdout())))?;
    }
    Ok(match explanation.unenforceable {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// The enforcement layers, from the outside in.
fn layers(plan: &Plan, support: &HostSupport, level: Level) -> Vec<Layer> {
    let layer = |name, what: &str| Layer {
        name,
        what: what.to_owned(),
    };
    let (spaces, sockets) = match (plan.network, level) {
        (Network::Restricted, Level::Namespaces) => {
            ("user, mount, PID, IPC and network", "no unix sockets, ")
        }
        (Network::Restricted, Level::Landlock) => ("", "no sockets, "),
        (Network::Enabled, _) => ("user, mount, PID and IPC", ""),
    };
    let mut layers = Vec::new();
    if level == Level::Namespaces {
        let what = format!("{spaces}, by {}", support.version);
        layers.push(layer("namespaces", &what));
        let mounter = match support.mounter {
            Mounter::Helper => "the outpost helper",
            Mounter::Bubblewrap => "bubblewrap, because only it may mount on this host",
        };
        layers.push(layer("mounts", &format!("the listed paths, by {mounter}")));
    }
    let paths = match level {
        Level::Namespaces => "the same paths again",
        Level::Landlock => "the paths",
    };
    layers.push(match support.landlock {
        0 => layer("landlock", "none in this kernel"),
        version => layer("landlock", &format!("{paths}, by ABI {version}")),
    });
    let calls = format!(
        "{sockets}no io_uring, no foreign architectures, no input into other terminals (TIOCSTI)"
    );
    layers.push(layer("seccomp", &calls));
    layers.push(layer("privileges", "none, and none can be gained"));
    layers
}

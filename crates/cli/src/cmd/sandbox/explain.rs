//! What a command would be confined to, and by what means.

use std::{io, path::PathBuf, process::ExitCode};

use outpost_engine::sandbox::{
    Level, Means, Mounter, Network, Plan,
    planning::{Bounds, Child, Host, plan},
};

use super::policy::Wish;
use crate::{
    args::Sandbox,
    cmd::confine,
    render::{
        explanation::{Explanation, Layer},
        out,
        paint::Paint,
    },
};

/// Prints the plan and the layers. The exit code says whether it can be
/// enforced here.
pub(super) fn explain(args: &Sandbox, wish: &Wish, level: Level) -> anyhow::Result<ExitCode> {
    let tmpdir = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let tmpdir = tmpdir.map(PathBuf::from);
    let child = Child {
        cwd: &wish.cwd,
        tmpdir: tmpdir.as_deref(),
    };
    let plan = match &wish.sandbox {
        None => None,
        Some(sandbox) => Some(plan(sandbox.policy(), &child, &Host, &Bounds::default())?),
    };
    let (layers, refusal) = match &plan {
        None => (Vec::new(), None),
        Some(plan) => match confine::sandbox(level).preflight() {
            Ok(means) => (layers(plan, &means, level), None),
            Err(reason) => (Vec::new(), Some(reason.to_string())),
        },
    };
    let explanation = Explanation {
        profile: &wish.profile,
        cwd: &wish.cwd,
        plan: plan.as_ref(),
        level,
        layers,
        refusal,
    };
    if args.json {
        out::lines([format!("{:#}", explanation.json())])?;
    } else {
        out::lines(explanation.lines(out::width(), Paint::on(&io::stdout())))?;
    }
    Ok(match explanation.refusal {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// The walls around the process, from the outside in.
fn layers(plan: &Plan, means: &Means, level: Level) -> Vec<Layer> {
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
        let what = format!("{spaces}, by {}", means.version);
        layers.push(layer("namespaces", &what));
        let mounter = match means.mounter {
            Mounter::Stage => "the helper of outpost inside them",
            Mounter::Bubblewrap => "bubblewrap: nobody else may mount here",
        };
        layers.push(layer("mounts", &format!("what is listed, by {mounter}")));
    }
    let paths = match level {
        Level::Namespaces => "the same paths again",
        Level::Landlock => "the paths",
    };
    layers.push(match means.landlock {
        0 => layer("landlock", "none in this kernel"),
        version => layer("landlock", &format!("{paths}, by ABI {version}")),
    });
    let calls = format!("{sockets}no io_uring, no foreign architectures, no typing for others");
    layers.push(layer("seccomp", &calls));
    layers.push(layer("privileges", "none, and no way to gain any"));
    layers
}

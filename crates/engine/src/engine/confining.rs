//! What a process is confined to, before there is one.

use std::path::Path;

use outpost_sandbox::{
    Plan, Refusal,
    planning::{Bounds, Child, Host, plan},
};

use crate::{Start, StartError};

/// The plan for a process that is to be confined. Looking at the files of the host may take a while,
/// so it has a thread of its own.
pub(super) async fn plan_for(start: &Start) -> Result<Option<Plan>, StartError> {
    let Some(policy) = start.sandbox.clone() else {
        return Ok(None);
    };
    let cwd = start.cwd.clone();
    let tmpdir = start.env.iter().rev().find(|(name, _)| name == "TMPDIR");
    let tmpdir = tmpdir.map(|(_, value)| value.clone());
    let planning = tokio::task::spawn_blocking(move || {
        let child = Child {
            cwd: &cwd,
            tmpdir: tmpdir
                .as_deref()
                .filter(|dir| !dir.is_empty())
                .map(Path::new),
        };
        plan(&policy, &child, &Host, &Bounds::default())
    });
    // It is not cancelled, so it ends early only by a panic, and what can't be planned can't be
    // enforced.
    let planned = planning.await.map_err(|_| Refusal::NoMeans)?;
    let plan = planned.map_err(Refusal::Plan)?;
    for warning in &plan.warnings {
        tracing::warn!(process = start.id, "sandbox: {warning}");
    }
    Ok(Some(plan))
}

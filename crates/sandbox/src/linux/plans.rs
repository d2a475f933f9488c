//! Makes plans from policies, the server's own paths, and the record of earlier grants.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::{Sandbox, SandboxRequest, preflight};
use crate::error::SandboxError;
use crate::planning::{
    self, HostFileSystem, OwnPath, PlanError, PlanLimits, ProcessDirectories, ServerPaths,
};
use crate::policy::Policy;
use crate::{Excess, Network, Origin, PathState, Plan, WithinRoots};

impl Sandbox {
    /// Binds a policy to the paths of this host. Blocks on the file system.
    ///
    /// # Errors
    /// If the policy can't be bound.
    pub fn plan(
        &self,
        policy: &Policy,
        context: &ProcessDirectories<'_>,
    ) -> Result<Plan, PlanError> {
        let own = self.own_paths();
        let granted = || self.shared.granted.load();
        let server = ServerPaths {
            granted: &granted,
            own: &own,
        };
        let limits = PlanLimits::default();
        planning::plan(policy, context, &server, &HostFileSystem, &limits)
    }

    /// Binds the policy of a request, and checks that it grants no more than its floor.
    pub(super) fn plan_request(
        &self,
        request: &SandboxRequest,
        context: &ProcessDirectories<'_>,
    ) -> Result<Plan, SandboxError> {
        let mut plan = self.plan(&request.policy, context)?;
        if self.create_own_directories(&plan) {
            plan = self.plan(&request.policy, context)?;
        }
        if let Some(floor) = &request.floor {
            let tmpdir = floor.tmpdir.as_deref().filter(|dir| !dir.is_empty());
            let limit_context = ProcessDirectories {
                tmpdir: tmpdir.map(Path::new),
                ..*context
            };
            let limit = self.plan(&floor.limit, &limit_context)?;
            if !request.listen.is_empty() && limit.network == Network::Restricted {
                // The server makes connections for the process, with the network of the host.
                return Err(SandboxError::ExceedsFloor(Excess::Network));
            }
            if let Some(excess) = plan.excess_over(&limit) {
                return Err(SandboxError::ExceedsFloor(excess));
            }
            if let Some(within) = &floor.within {
                plan = self.plan_within(within, &request.policy, &plan, context)?;
            }
        }
        if !request.listen.is_empty() {
            plan.network = Network::Restricted;
            plan.listen.clone_from(&request.listen);
        }
        Ok(plan)
    }

    /// Returns the intersection of the plan of a policy with these directories.
    fn plan_within(
        &self,
        within: &WithinRoots,
        policy: &Policy,
        plan: &Plan,
        context: &ProcessDirectories<'_>,
    ) -> Result<Plan, SandboxError> {
        let narrowed = self.plan(&within.narrow(policy, context.tmpdir), context)?;
        let limit = self.plan(&within.policy, context)?;
        // Links in entries may lead out of the directories.
        let excess = [plan, &limit].into_iter();
        match excess
            .filter_map(|limit| narrowed.excess_over(limit))
            .next()
        {
            Some(excess) => Err(SandboxError::ExceedsFloor(excess)),
            None => Ok(narrowed),
        }
    }

    /// Returns our own paths: the configured ones, the grant record, this program, and bubblewrap.
    fn own_paths(&self) -> Vec<OwnPath> {
        let support = self.shared.support.lock();
        let bubblewrap = support.as_ref().map(|support| support.bubblewrap.clone());
        let bubblewrap = bubblewrap
            .filter(|path| path.is_absolute() && !preflight::is_in_system_directory(path));
        let programs = self.shared.program.clone().into_iter().chain(bubblewrap);
        let record = self.shared.granted.own_path();
        let named = self.shared.command.own_paths.iter().cloned().chain(record);
        named.chain(programs.map(OwnPath::read_only)).collect()
    }

    /// Creates those own directories that are absent and that a process with this plan could create.
    /// Otherwise the sandbox would put a placeholder at such a path, and a server that needs the
    /// directory could not create it. Returns whether a directory was created.
    pub(super) fn create_own_directories(&self, plan: &Plan) -> bool {
        let is_absent = |path: &Path| {
            let mut rules = plan.rules.iter();
            rules.any(|rule| {
                let absent = rule.presence == PathState::Absent && rule.origin == Origin::Own;
                absent && path.starts_with(&rule.path)
            })
        };
        let mut created = false;
        for own in self.own_paths() {
            if own.creates && is_absent(&own.path) {
                let mut builder = DirBuilder::new();
                // If it fails, a placeholder is used.
                let result = builder.recursive(true).mode(0o700).create(&own.path);
                created |= result.is_ok();
            }
        }
        created
    }
}

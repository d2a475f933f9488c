//! Applies the sandbox, the roots and the limits of a principal to its requests.

use std::{path::PathBuf, sync::Arc};

use outpost_engine::{
    NetworkRequest, NotPermitted, Start, StartError,
    netproxy::RuleSet,
    sandbox::{
        Access, BoundingRoot, Floor, Network, WithinRoots,
        planning::PROTECTED,
        policy::{Entry, FileSystem, Policy, Profile},
    },
};
use outpost_protocol::RpcError;

use super::Connection;
use crate::{
    auth::{RequestPath, Root, roots},
    convert,
};

impl Connection {
    /// Applies the bounds of the principal to a start.
    pub(super) async fn bound(&self, start: &mut Start) -> Result<(), StartError> {
        let settings = &self.principal.settings;
        start.max_processes = settings.limits.processes;
        start.limits = settings.limits.of_process(start.limits)?;
        let workspace_roots = start.sandbox.iter().flat_map(|one| &one.workspace_roots);
        let used = [&start.cwd].into_iter().chain(workspace_roots);
        let used = used.cloned().map(RequestPath::followed).collect();
        let roots = self.check_roots(used).await?;
        let profile = self.least_profile()?;
        let network_limits = self.network_limits(profile.as_ref())?;
        for rules in &network_limits {
            let requested = start.network.take();
            start.network = NetworkRequest::narrowed(requested, start.sandbox.as_ref(), rules)?;
        }
        let has_network =
            |profile: &Profile| !network_limits.is_empty() || profile.network == Network::Enabled;
        if let Some(profile) = profile {
            // A proxy connects from outside of the sandbox.
            if start.network.is_some() && !has_network(&profile) {
                return Err(NotPermitted::Unconfinable("a managed network").into());
            }
            // Without roots, the client chooses the directory that it may write.
            let workspace = match roots.is_empty() {
                true => vec![start.cwd.clone()],
                false => real_paths(&roots),
            };
            let mut limit = profile.policy_for_roots(&workspace);
            if has_network(&profile) {
                // With network policies, it is narrowed already.
                limit.network = Network::Enabled;
            }
            let with_cwd = [workspace, vec![start.cwd.clone()]].concat();
            let default = profile.policy_for_roots(&with_cwd);
            start.floor = Some(self.floor(limit, default, None));
        }
        Ok(())
    }

    /// Checks that a file operation that uses these paths is within the roots of the principal, and
    /// returns the minimum sandbox of the operation.
    pub(crate) async fn file_floor(
        &self,
        paths: Vec<RequestPath>,
        policy: Option<&Policy>,
    ) -> Result<Option<Arc<Floor>>, StartError> {
        let profile = self.least_profile()?;
        let workspace_roots = policy.iter().flat_map(|policy| &policy.workspace_roots);
        let workspace_roots = workspace_roots.cloned().map(RequestPath::followed);
        let roots = self
            .check_roots(workspace_roots.chain(paths).collect())
            .await?;
        let has_roots = !self.principal.settings.roots.is_empty();
        let (policy, within) = match profile {
            Some(profile) => {
                let within = has_roots.then(|| within(&roots));
                (profile.policy_for_roots(&real_paths(&roots)), within)
            }
            None if has_roots => (only(&roots), None),
            None => return Ok(None),
        };
        Ok(Some(self.floor(policy.clone(), policy, within)))
    }

    /// Rejects the watch of paths outside of the roots of the principal. A watch cannot be sandboxed.
    pub(crate) async fn check_watch(&self, paths: Vec<PathBuf>) -> Result<(), RpcError> {
        let checked = async {
            if self.least_profile()?.is_some() {
                return Err(NotPermitted::Unconfinable("a watch").into());
            }
            let used = paths.into_iter().map(RequestPath::followed);
            self.check_roots(used.collect()).await
        };
        let checked: Result<_, StartError> = checked.await;
        checked
            .map(drop)
            .map_err(|error| convert::start_error(&error))
    }

    /// Whether every process of the principal is sandboxed.
    pub(crate) fn confines_all(&self) -> bool {
        !matches!(self.least_profile(), Ok(None))
    }

    /// Whether the principal may watch any path.
    pub(crate) fn may_watch_anything(&self) -> bool {
        !self.confines_all() && self.principal.settings.roots.is_empty()
    }

    /// Whether a network policy narrows the network of the principal's processes.
    pub(crate) fn has_network_policy(&self) -> bool {
        let profile = self.principal.settings.sandbox.as_deref();
        let profiles = &self.server.settings.profiles;
        self.principal.settings.network.is_some()
            || profile.is_some_and(|name| profiles.network_policy(name).is_some())
    }

    /// Rejects an HTTP request if the sandbox of the principal has no network, or only that of a policy.
    pub(crate) fn check_network(&self) -> Result<(), RpcError> {
        let sandboxed = self.least_profile().and_then(|profile| {
            let has_none = profile.is_some_and(|profile| profile.network != Network::Enabled);
            match has_none || self.has_network_policy() {
                true => Err(NotPermitted::Unconfinable("an HTTP request").into()),
                false => Ok(()),
            }
        });
        sandboxed.map_err(|error| convert::start_error(&error))
    }

    /// Rejects a request that asks not to be sandboxed, if the principal has a sandbox.
    pub(crate) fn check_unsandboxed(&self, asks_for_none: bool) -> Result<(), NotPermitted> {
        match asks_for_none && self.confines_all() {
            true => Err(NotPermitted::Unsandboxed),
            false => Ok(()),
        }
    }

    /// Returns the profile that is the minimum sandbox of the principal, if it has one.
    fn least_profile(&self) -> Result<Option<Profile>, StartError> {
        let Some(name) = &self.principal.settings.sandbox else {
            return Ok(None);
        };
        let profile = self.server.settings.profiles.profile(name);
        // The configuration names existing profiles only.
        profile.map_err(|_| NotPermitted::Unsandboxed.into())
    }

    /// Returns the rules of the network policies of the principal and of its sandbox.
    fn network_limits(&self, profile: Option<&Profile>) -> Result<Vec<RuleSet>, StartError> {
        let policies = &self.server.settings.network_policies;
        let of_profile = profile.and_then(|profile| profile.network_policy.as_ref());
        let names = self.principal.settings.network.iter().chain(of_profile);
        let rules = names.map(|name| policies.named(name));
        // The configuration names existing policies only.
        let rules: Result<_, _> = rules.collect();
        rules.map_err(|_| NotPermitted::Unconfinable("a process").into())
    }

    fn floor(&self, limit: Policy, default: Policy, within: Option<WithinRoots>) -> Arc<Floor> {
        let tmpdir = self.server.host.environment.get("TMPDIR");
        Arc::new(Floor {
            limit,
            default,
            tmpdir: tmpdir.map(ToOwned::to_owned),
            within,
        })
    }

    /// Checks that all paths lie below the roots of the principal, if it has some. Returns those that
    /// exist.
    async fn check_roots(&self, used: Vec<RequestPath>) -> Result<Vec<Root>, StartError> {
        let configured = self.principal.settings.roots.clone();
        if configured.is_empty() {
            return Ok(Vec::new());
        }
        let check = move || {
            let roots = roots::existing(&configured);
            match roots::find_outside(&roots, &used) {
                Some(outside) => Err(outside),
                None => Ok(roots),
            }
        };
        let checked = self.server.file_threads.run(check).await;
        let checked = checked.map_err(|_| StartError::TooMany)?;
        checked.map_err(|outside| NotPermitted::OutsideRoots(outside).into())
    }
}

fn real_paths(roots: &[Root]) -> Vec<PathBuf> {
    roots.iter().map(|root| root.real.clone()).collect()
}

/// Returns the bounds of file operations below these directories.
fn within(roots: &[Root]) -> WithinRoots {
    let bounding = |root: &Root| BoundingRoot {
        named: root.named.clone(),
        real: root.real.clone(),
    };
    WithinRoots {
        roots: roots.iter().map(bounding).collect(),
        policy: only(roots),
    }
}

/// Returns a policy that grants these directories only.
fn only(roots: &[Root]) -> Policy {
    let write = |path: PathBuf| Entry::path(path, Access::Write).skip_missing();
    let entries = roots.iter().flat_map(|root| {
        // Otherwise they would be read-only, which is for sandboxed processes.
        let protected = PROTECTED.into_iter().map(|name| root.real.join(name));
        // With the symbolic links on the way to it.
        let named = Some(&root.named).filter(|named| **named != root.real);
        let paths = [&root.real].into_iter().chain(named).cloned();
        paths.chain(protected).map(write)
    });
    Policy {
        file_system: FileSystem::restricted(entries.collect()),
        network: Network::Restricted,
        cwd: PathBuf::from("/"),
        workspace_roots: real_paths(roots),
    }
}

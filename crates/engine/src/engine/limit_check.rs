//! Which limits of a process can be enforced.

use std::collections::BTreeMap;

use outpost_types::{LimitError, LimitName, LimitSupport, ResourceLimits};

use super::Engine;

impl Engine {
    /// Returns which limits can be enforced on this host.
    pub async fn limit_support(&self) -> LimitSupport {
        let reasons = self.unenforceable_limits().await;
        let is_enforceable = |name: &LimitName| !reasons.contains_key(name);
        let enforceable = LimitName::ALL.into_iter().filter(is_enforceable);
        LimitSupport {
            enforceable: enforceable.map(|name| name.as_str().to_owned()).collect(),
            unenforceable: reasons
                .iter()
                .map(|(name, reason)| (name.as_str().to_owned(), reason.clone()))
                .collect(),
        }
    }

    /// Checks that all limits of a process are valid and can be enforced.
    pub(super) async fn check_limits(&self, limits: &ResourceLimits) -> Result<(), LimitError> {
        if limits.is_empty() {
            return Ok(());
        }
        limits.check()?;
        let mut refused = self.shared.spawner.limits_too_high(limits);
        if limits.needs_cgroup() {
            let mut reasons = self.unenforceable_limits().await;
            let names = limits.names().into_iter();
            refused.extend(names.filter_map(|name| Some((name, reasons.remove(&name)?))));
            refused.sort_unstable();
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(LimitError::Unenforceable(refused)),
        }
    }

    async fn unenforceable_limits(&self) -> BTreeMap<LimitName, String> {
        let spawner = self.shared.spawner.clone();
        let found = tokio::task::spawn_blocking(move || spawner.unenforceable_limits());
        // Fails only when the runtime shuts down.
        let all = |error: tokio::task::JoinError| {
            let needs_cgroup = LimitName::ALL
                .into_iter()
                .filter(|name| name.needs_cgroup());
            needs_cgroup.map(|name| (name, error.to_string())).collect()
        };
        found.await.unwrap_or_else(all)
    }
}

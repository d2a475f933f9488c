//! Checks that the limits of principals can be enforced on this host.

use std::collections::BTreeMap;

use outpost_engine::LimitName;

use super::{Finding, State, lacks};
use crate::config::Config;

/// One finding for each principal that can start nothing.
pub(super) fn findings(
    config: &Config,
    unenforceable: &BTreeMap<LimitName, String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, principal) in &config.principals {
        let lacking = principal.process_limits();
        let lacking = lacking
            .filter_map(|(limit, of_process)| Some((limit, unenforceable.get(&of_process)?)));
        let (limits, reasons): (Vec<_>, Vec<_>) = lacking.unzip();
        if let Some(reason) = reasons.first() {
            let found = format!(
                "can start nothing: {} cannot be enforced",
                limits.join(", ")
            );
            let check = lacks(State::Failed, found, reason);
            findings.push(Finding::new(&format!("principals.{name}"), check));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_whose_limits_cannot_be_enforced_is_named() {
        let config = toml_config(
            "[principals.ci]\nlimits = { memory = \"1GiB\", cpus = 2 }\n[principals.free]\n",
        );
        let reason = "run it with Delegate=yes".to_owned();
        let unenforceable = BTreeMap::from([
            (LimitName::MemoryBytes, reason.clone()),
            (LimitName::Cpus, reason.clone()),
        ]);
        let all = findings(&config, &unenforceable);
        let [finding] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(finding.name, "principals.ci");
        assert_eq!(
            finding.found,
            "can start nothing: memory, cpus cannot be enforced"
        );
        assert_eq!(
            (finding.state, finding.to_do.as_ref()),
            (State::Failed, Some(&reason))
        );
        assert_eq!(findings(&config, &BTreeMap::new()), []);
    }

    fn toml_config(text: &str) -> Config {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        crate::config::load_config(Some(file.path().to_owned())).unwrap()
    }
}

//! Principals by name, as written in a file.
//!
//! ```toml
//! [principals.ci]
//! scopes = ["exec", "files:read", "files:write"]
//! sandbox = ":workspace"
//! network = "packages"
//! roots = ["/srv/ci"]
//! limits = { processes = 50, sessions = 10, memory = "2GiB", cpus = 2 }
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use outpost_engine::LimitName;
use outpost_engine::sandbox::{
    Access,
    policy::{Entry, EntryPath, FileSystem, Profiles, SpecialPath},
};
use outpost_server::{AccessScope, PrincipalLimits, PrincipalSettings, Root};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::values::size;

/// `[principals.NAME]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PrincipalTable {
    /// The scopes: groups of methods that the principal may call.
    scopes: BTreeSet<AccessScope>,
    /// The profile that is its minimum sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<String>,
    /// The network policy that narrows the network of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<String>,
    /// The directories to which its processes and file operations are restricted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roots: Vec<PathBuf>,
    #[serde(skip_serializing_if = "LimitsTable::is_empty")]
    limits: LimitsTable,
}

/// `limits` of a principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct LimitsTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<f64>,
}

/// A number of bytes, written as a size such as `"2GiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
struct Memory(#[serde(with = "size")] usize);

impl LimitsTable {
    fn is_empty(&self) -> bool {
        *self == LimitsTable::default()
    }
}

impl Default for PrincipalTable {
    fn default() -> Self {
        PrincipalTable {
            scopes: PrincipalSettings::default().scopes,
            sandbox: None,
            network: None,
            roots: Vec::new(),
            limits: LimitsTable::default(),
        }
    }
}

impl PrincipalTable {
    /// Parses and checks the table `[principals.NAME]`.
    fn parse(table: Value) -> anyhow::Result<Self> {
        let table: PrincipalTable = serde_json::from_value(table)?;
        ensure!(
            table.roots.iter().all(|root| root.is_absolute()),
            "expected roots with absolute paths"
        );
        let limits = &table.limits;
        let counts = [limits.processes, limits.sessions, limits.connections];
        let memory = limits.memory.map(|memory| memory.0);
        ensure!(
            !counts.contains(&Some(0)) && memory != Some(0),
            "expected limits greater than 0"
        );
        ensure!(
            limits.cpus.is_none_or(|cpus| (0.01..1e6).contains(&cpus)),
            "expected a number of CPUs of at least 0.01"
        );
        Ok(table)
    }

    /// Converts the table to permissions. Resolves symbolic links in roots now, so that a later change
    /// of a link has no effect.
    pub(crate) fn settings(&self) -> PrincipalSettings {
        let resolved = |root: &PathBuf| Root {
            named: normal(root),
            real: root.canonicalize().unwrap_or_else(|_| normal(root)),
        };
        let LimitsTable {
            processes,
            sessions,
            connections,
            memory,
            cpus,
        } = self.limits;
        PrincipalSettings {
            scopes: self.scopes.clone(),
            sandbox: self.sandbox.clone(),
            network: self.network.clone(),
            roots: self.roots.iter().map(resolved).collect(),
            limits: PrincipalLimits {
                processes,
                sessions,
                connections,
                memory_bytes: memory.map(|memory| memory.0 as u64),
                cpus,
            },
        }
    }

    /// Whether its sandbox grants writing to the working directory, which the client chooses.
    pub(crate) fn chooses_workspace(&self, profiles: &Profiles) -> bool {
        let profile = self.sandbox.as_deref().map(|name| profiles.profile(name));
        let Some(Ok(Some(profile))) = profile else {
            return false;
        };
        let writes_workspace = |entry: &Entry| {
            let is_workspace = matches!(
                entry.path,
                EntryPath::Special {
                    value: SpecialPath::ProjectRoots { .. }
                }
            );
            is_workspace && entry.access == Access::Write
        };
        match &profile.file_system {
            FileSystem::Restricted(files) => {
                self.roots.is_empty() && files.entries.iter().any(writes_workspace)
            }
            FileSystem::Unrestricted => false,
        }
    }

    /// The limits of its processes, by their names in this table and of a process.
    pub(crate) fn process_limits(&self) -> impl Iterator<Item = (&'static str, LimitName)> {
        let LimitsTable { memory, cpus, .. } = self.limits;
        let memory = memory.map(|_| ("memory", LimitName::MemoryBytes));
        memory
            .into_iter()
            .chain(cpus.map(|_| ("cpus", LimitName::Cpus)))
    }

    /// The roots that don't exist.
    pub(crate) fn missing_roots(&self) -> impl Iterator<Item = &Path> {
        let roots = self.roots.iter().map(PathBuf::as_path);
        roots.filter(|root| !root.is_dir())
    }
}

/// The path without `.` and without slashes at the end.
fn normal(path: &Path) -> PathBuf {
    path.components().collect()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, PrincipalTable>, D::Error> {
    let tables = Map::deserialize(deserializer)
        .map_err(|_| D::Error::custom("expected a table for each, as in [principals.NAME]"))?;
    let parse = |(name, table): (String, Value)| {
        let settings = PrincipalTable::parse(table);
        let settings =
            settings.map_err(|error| D::Error::custom(format_args!("{name}: {error}")))?;
        Ok((name, settings))
    };
    tables.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn written_table_is_read_again() {
        let table = json!({
            "scopes": ["exec"],
            "sandbox": ":workspace",
            "network": "packages",
            "roots": ["/"],
            "limits": {"processes": 50, "sessions": 10, "connections": 3, "memory": "2GiB", "cpus": 1.5},
        });
        let parsed = PrincipalTable::parse(table.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), table);
        let limits = parsed.settings().limits;
        assert_eq!((limits.processes, limits.sessions), (Some(50), Some(10)));
        assert_eq!(limits.memory_bytes, Some(2 << 30));
        let empty = PrincipalTable::parse(json!({})).unwrap();
        assert_eq!(empty.settings(), PrincipalSettings::default());
    }

    #[test]
    fn links_in_roots_are_resolved() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&base, base.join("link")).unwrap();
        let roots = [base.join("link"), base.join("missing/./")];
        let table = PrincipalTable::parse(json!({ "roots": roots })).unwrap();
        let real: Vec<_> = table
            .settings()
            .roots
            .into_iter()
            .map(|root| root.real)
            .collect();
        assert_eq!(real, [base.clone(), base.join("missing")]);
        let missing: Vec<_> = table.missing_roots().collect();
        assert_eq!(missing, [roots[1].as_path()]);
    }

    #[test]
    fn unusable_tables_say_what_is_expected() {
        let messages: Vec<_> = [
            json!({"network": {"allow": []}}),
            json!({"scope": ["exec"]}),
            json!({"roots": ["srv"]}),
            json!({"limits": {"processes": 0}}),
            json!({"limits": {"memory": "much"}}),
            json!({"limits": {"cpus": 0}}),
            json!({"limits": {"disk": 1}}),
        ]
        .into_iter()
        .map(|table| PrincipalTable::parse(table).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        invalid type: map, expected a string
        unknown field `scope`, expected one of `scopes`, `sandbox`, `network`, `roots`, `limits`
        expected roots with absolute paths
        expected limits greater than 0
        expected a size such as 65536, "64KiB" or "1MiB"
        expected a number of CPUs of at least 0.01
        unknown field `disk`, expected one of `processes`, `sessions`, `connections`, `memory`, `cpus`
        "#);
    }
}

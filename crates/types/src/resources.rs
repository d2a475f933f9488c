//! Resources of a process: limits, usage, and what ended it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the resources of a process and its descendants. Absent members set no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceLimits {
    /// Memory of the whole tree. Beyond it the tree is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub memory_bytes: Option<u64>,
    /// Swap space of the whole tree, in addition to its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_bytes: Option<u64>,
    /// CPUs that the whole tree may use at once, such as 1.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01))]
    pub cpus: Option<f64>,
    /// CPU time of each process, which is then ended by SIGXCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cpu_seconds: Option<u64>,
    /// Processes and threads of the whole tree. Beyond it no more can be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub processes: Option<u64>,
    /// Open files of each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub open_files: Option<u64>,
    /// Size of a file that a process writes. Beyond it the process is ended by SIGXFSZ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
}

/// The smallest share of a CPU that the kernel can enforce.
const MIN_CPUS: f64 = 0.01;
/// More CPUs than any machine has.
const MAX_CPUS: f64 = 1_000_000.0;

impl ResourceLimits {
    /// Whether no limit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits that are set.
    #[must_use]
    pub fn names(&self) -> Vec<LimitName> {
        let is_set = |name: &LimitName| match name {
            LimitName::MemoryBytes => self.memory_bytes.is_some(),
            LimitName::SwapBytes => self.swap_bytes.is_some(),
            LimitName::Cpus => self.cpus.is_some(),
            LimitName::CpuSeconds => self.cpu_seconds.is_some(),
            LimitName::Processes => self.processes.is_some(),
            LimitName::OpenFiles => self.open_files.is_some(),
            LimitName::FileSizeBytes => self.file_size_bytes.is_some(),
        };
        LimitName::ALL.into_iter().filter(is_set).collect()
    }

    /// Whether one of the limits needs a cgroup.
    #[must_use]
    pub fn needs_cgroup(&self) -> bool {
        self.names().into_iter().any(LimitName::needs_cgroup)
    }

    /// Checks that every limit is in its range.
    ///
    /// # Errors
    /// With the first limit that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        let positive = [
            (LimitName::MemoryBytes, self.memory_bytes),
            (LimitName::CpuSeconds, self.cpu_seconds),
            (LimitName::Processes, self.processes),
            (LimitName::OpenFiles, self.open_files),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| *value == Some(0)) {
            return Err(LimitError::Zero { name });
        }
        match self.cpus {
            Some(cpus) if !(MIN_CPUS..=MAX_CPUS).contains(&cpus) => Err(LimitError::Cpus),
            _ => Ok(()),
        }
    }
}

/// The name of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "see ResourceLimits")]
pub enum LimitName {
    MemoryBytes,
    SwapBytes,
    Cpus,
    CpuSeconds,
    Processes,
    OpenFiles,
    FileSizeBytes,
}

impl LimitName {
    /// All limits.
    pub const ALL: [Self; 7] = [
        Self::MemoryBytes,
        Self::SwapBytes,
        Self::Cpus,
        Self::CpuSeconds,
        Self::Processes,
        Self::OpenFiles,
        Self::FileSizeBytes,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryBytes => "memoryBytes",
            Self::SwapBytes => "swapBytes",
            Self::Cpus => "cpus",
            Self::CpuSeconds => "cpuSeconds",
            Self::Processes => "processes",
            Self::OpenFiles => "openFiles",
            Self::FileSizeBytes => "fileSizeBytes",
        }
    }

    /// Whether a cgroup enforces it. The others are resource limits of `setrlimit`, which work
    /// everywhere.
    #[must_use]
    pub fn needs_cgroup(self) -> bool {
        match self {
            Self::MemoryBytes | Self::SwapBytes | Self::Cpus | Self::Processes => true,
            Self::CpuSeconds | Self::OpenFiles | Self::FileSizeBytes => false,
        }
    }
}

/// Why a process with limits is not started. The text is part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A limit of zero, with which nothing could run.
    #[error("limits.{} must be greater than 0", .name.as_str())]
    Zero {
        /// The limit.
        name: LimitName,
    },
    /// A number of CPUs that the kernel cannot enforce.
    #[error("limits.cpus must be between {MIN_CPUS} and {MAX_CPUS}")]
    Cpus,
    /// This host cannot enforce these limits, each with the reason and the remedy.
    #[error("limit cannot be enforced on this executor: {}", with_reasons(.0))]
    Unenforceable(Vec<(LimitName, String)>),
}

fn with_reasons(limits: &[(LimitName, String)]) -> String {
    let limits = limits
        .iter()
        .map(|(name, reason)| format!("{}: {reason}", name.as_str()));
    limits.collect::<Vec<_>>().join("; ")
}

/// Which limits an executor can enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitSupport {
    /// The members of `limits` that can be enforced.
    pub enforceable: Vec<String>,
    /// The others, and why not.
    pub unenforceable: BTreeMap<String, String>,
}

/// The resources that a process and the descendants that it has waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// CPU time, in milliseconds.
    pub cpu_ms: u64,
    /// The part of it that was spent in the program.
    #[serde(default)]
    pub user_ms: u64,
    /// The part of it that was spent in the kernel.
    #[serde(default)]
    pub system_ms: u64,
    /// The largest resident memory of one process; absent if it is unknown. At least that of the server,
    /// whose memory the child shares until it executes the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    /// The largest memory of the whole tree; only with a limit that a cgroup enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

/// The cause of a process's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum EndedBy {
    /// It exited by itself.
    Exit,
    /// A signal.
    Signal,
    /// Its timeout.
    Timeout,
    /// A request to terminate it, or the end of its session.
    Terminated,
    /// The limit of its memory, or the lack of memory on the host.
    Oom,
    /// The limit of its CPU time.
    CpuLimit,
    /// Unknown: its exit status was lost.
    Lost,
    /// A cause that this version does not know.
    #[serde(other)]
    Unknown,
}

crate::string_enum!(EndedBy);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_by_range() {
        let limits = |text: &str| serde_json::from_str::<ResourceLimits>(text).expect(text);
        assert_eq!(limits("{}"), ResourceLimits::default());
        assert_eq!(limits(r#"{"cpus":1,"swapBytes":0}"#).check(), Ok(()));
        for (text, message) in [
            (
                r#"{"memoryBytes":0}"#,
                "limits.memoryBytes must be greater than 0",
            ),
            (
                r#"{"processes":0}"#,
                "limits.processes must be greater than 0",
            ),
            (
                r#"{"cpus":0}"#,
                "limits.cpus must be between 0.01 and 1000000",
            ),
            (
                r#"{"cpus":1e300}"#,
                "limits.cpus must be between 0.01 and 1000000",
            ),
        ] {
            let error = limits(text).check().expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn unknown_limits_are_rejected() {
        let parsed = serde_json::from_str::<ResourceLimits>(r#"{"memoryByte":1}"#);
        assert!(parsed.is_err());
    }

    #[test]
    fn names_are_those_of_the_wire() {
        let all = ResourceLimits {
            memory_bytes: Some(1),
            swap_bytes: Some(2),
            cpus: Some(3.0),
            cpu_seconds: Some(4),
            processes: Some(5),
            open_files: Some(6),
            file_size_bytes: Some(7),
        };
        let value = serde_json::to_value(all).expect("JSON");
        let names = all.names().into_iter().map(LimitName::as_str);
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let members: Vec<_> = value.as_object().expect("an object").keys().collect();
        assert_eq!(names, members);
        assert!(all.needs_cgroup());
        assert!(!ResourceLimits::default().needs_cgroup());
    }

    #[test]
    fn causes_of_newer_servers_are_read() {
        let read = |text: &str| serde_json::from_str::<EndedBy>(text).expect(text);
        assert_eq!(read("\"cpuLimit\""), EndedBy::CpuLimit);
        assert_eq!(read("\"cosmicRays\""), EndedBy::Unknown);
    }
}

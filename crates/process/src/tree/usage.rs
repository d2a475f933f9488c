//! The resources that a process tree has used, as its cgroup counts them.

/// CPU time, in microseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) user: u64,
    pub(crate) system: u64,
}

impl CpuTime {
    /// Parses `cpu.stat`, which every cgroup has.
    pub(super) fn parse(text: &str) -> Self {
        Self {
            user: field(text, "user_usec"),
            system: field(text, "system_usec"),
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// The usage of a whole tree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    pub(crate) cpu: CpuTime,
    /// Known with the memory controller only.
    pub(crate) peak_memory_bytes: Option<u64>,
}

/// A number in a file with lines of a name and a number; 0 if it is missing.
pub(super) fn field(text: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_whole_name() {
        let text = "low 1\noom 2\noom_kill 3\noom_group_kill 4\n";
        assert_eq!(field(text, "oom_kill"), 3);
        assert_eq!(field(text, "oom"), 2);
        assert_eq!(field(text, "max"), 0);
    }

    #[test]
    fn cpu_time_of_earlier_owners_does_not_count() {
        let before = CpuTime::parse("usage_usec 30\nuser_usec 10\nsystem_usec 20\n");
        let after = CpuTime::parse("usage_usec 90\nuser_usec 40\nsystem_usec 50\n");
        let used = CpuTime {
            user: 30,
            system: 30,
        };
        assert_eq!(after.since(before), used);
    }
}

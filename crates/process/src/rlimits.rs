//! Limits of `setrlimit` that a child starts with.

use outpost_types::{LimitName, ResourceLimits};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The soft and hard limits of a child; `None` to inherit those of its parent.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// `RLIMIT_NOFILE`.
    pub open_files: Option<(u64, u64)>,
    /// `RLIMIT_CPU`.
    pub cpu_seconds: Option<(u64, u64)>,
    /// `RLIMIT_FSIZE`.
    pub file_size: Option<(u64, u64)>,
}

impl Rlimits {
    /// Converts requested limits. None is higher than this process's own, which an unprivileged process
    /// could not set. `open_files` are the limits of a child that requests none.
    #[must_use]
    pub fn new(limits: &ResourceLimits, open_files: Option<(u64, u64)>) -> Self {
        let own = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let both = |limit: u64, most: u64| (limit.min(most), limit.min(most));
        Self {
            open_files: match (limits.open_files, open_files) {
                (Some(limit), Some((_, hard))) => Some(both(limit, hard)),
                (Some(limit), None) => Some(both(limit, own(Resource::Nofile))),
                (None, inherited) => inherited,
            },
            // A process that ignores SIGXCPU is killed a second later.
            cpu_seconds: limits.cpu_seconds.map(|limit| {
                let most = own(Resource::Cpu);
                (limit.min(most), limit.saturating_add(1).min(most))
            }),
            file_size: limits
                .file_size_bytes
                .map(|limit| both(limit, own(Resource::Fsize))),
        }
    }

    /// Requested limits that are higher than those of this process, with the reason and the remedy.
    pub(crate) fn too_high(
        limits: &ResourceLimits,
        open_files: Option<(u64, u64)>,
    ) -> Vec<(LimitName, String)> {
        let own = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most_files = open_files.map_or_else(|| own(Resource::Nofile), |(_, hard)| hard);
        let most_time = own(Resource::Cpu);
        let most_bytes = own(Resource::Fsize);
        let all = [
            (LimitName::CpuSeconds, limits.cpu_seconds, most_time, "CPU"),
            (
                LimitName::OpenFiles,
                limits.open_files,
                most_files,
                "NOFILE",
            ),
            (
                LimitName::FileSizeBytes,
                limits.file_size_bytes,
                most_bytes,
                "FSIZE",
            ),
        ];
        let refused = all.into_iter().filter_map(|(name, limit, most, setting)| {
            limit.filter(|limit| *limit > most)?;
            let reason = format!(
                "the most that a process can have here is {most}; start outpost with a higher hard limit, \
                 by ulimit or Limit{setting}= of its systemd unit"
            );
            Some((name, reason))
        });
        refused.collect()
    }

    /// Sets the limits of the calling process.
    ///
    /// # Errors
    /// If the kernel refuses one.
    pub fn set(&self) -> Result<(), Errno> {
        for (resource, limit) in [
            (Resource::Nofile, self.open_files),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Fsize, self.file_size),
        ] {
            if let Some((soft, hard)) = limit {
                let limit = |value| (value != u64::MAX).then_some(value);
                let (current, maximum) = (limit(soft), limit(hard));
                setrlimit(resource, Rlimit { current, maximum })?;
            }
        }
        Ok(())
    }

    /// The limits in the form of `prlimit64`.
    pub(crate) fn raw(&self) -> [Option<(u32, libc::rlimit64)>; 3] {
        let raw = |resource, limit: Option<(u64, u64)>| {
            limit.map(|(rlim_cur, rlim_max)| (resource, libc::rlimit64 { rlim_cur, rlim_max }))
        };
        [
            raw(libc::RLIMIT_NOFILE, self.open_files),
            raw(libc::RLIMIT_CPU, self.cpu_seconds),
            raw(libc::RLIMIT_FSIZE, self.file_size),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_stay_below_those_of_this_process() {
        let limits = ResourceLimits {
            open_files: Some(u64::MAX - 1),
            cpu_seconds: Some(7),
            ..ResourceLimits::default()
        };
        let converted = Rlimits::new(&limits, Some((10, 20)));
        assert_eq!(converted.open_files, Some((20, 20)));
        let most = getrlimit(Resource::Cpu).maximum.unwrap_or(u64::MAX);
        assert_eq!(converted.cpu_seconds, Some((7.min(most), 8.min(most))));
        assert_eq!(converted.file_size, None);
        let none = Rlimits::new(&ResourceLimits::default(), Some((10, 20)));
        assert_eq!(none.open_files, Some((10, 20)));
    }

    #[test]
    fn limits_above_those_of_this_process_are_named() {
        let names = |open_files| {
            let limits = ResourceLimits {
                open_files,
                cpu_seconds: Some(1),
                ..ResourceLimits::default()
            };
            let refused = Rlimits::too_high(&limits, Some((10, 20)));
            refused
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(None), []);
        assert_eq!(names(Some(20)), []);
        assert_eq!(names(Some(21)), [LimitName::OpenFiles]);
    }
}

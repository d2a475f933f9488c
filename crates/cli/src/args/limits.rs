//! `--memory`, `--cpus` and the other limits of a command.

use std::time::Duration;

use outpost_client::{EndedBy, Executor, Exit, LimitSupport, ResourceLimits};
use outpost_engine::LimitName;

use crate::units::{byte_size, format_time, parse_size, parse_time};

/// The exit code of a process that SIGXFSZ ended.
const FILE_SIZE_EXCEEDED: i32 = 128 + 25;

/// Limits of a command and its descendants.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// The memory of the command with all of its processes, such as 2GiB; beyond it, they are killed
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,

    /// The swap space that they may use in addition
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) swap: Option<u64>,

    /// How many CPUs they may use at once, such as 1.5
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<f64>,

    /// How many processes and threads there may be
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pids: Option<u64>,

    /// The CPU time of each process, in whole seconds
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    pub(crate) cpu_time: Option<Duration>,

    /// How many files each process may have open
    #[arg(long, value_name = "NUMBER")]
    pub(crate) open_files: Option<u64>,

    /// The size of a file that a process may write
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
}

fn size(text: &str) -> Result<u64, &'static str> {
    let size = parse_size(text).ok_or("expected a size such as 65536, 64MiB or 2GiB")?;
    u64::try_from(size).map_err(|_| "expected a smaller size")
}

fn whole_seconds(text: &str) -> Result<Duration, &'static str> {
    let time = parse_time(text)?;
    match time.subsec_nanos() {
        0 => Ok(time),
        _ => Err("expected whole seconds"),
    }
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> ResourceLimits {
        ResourceLimits {
            memory_bytes: self.memory,
            swap_bytes: self.swap,
            cpus: self.cpus,
            cpu_seconds: self.cpu_time.map(|time| time.as_secs()),
            processes: self.pids,
            open_files: self.open_files,
            file_size_bytes: self.file_size,
        }
    }

    /// Says which of the limits an executor cannot enforce, if there are any.
    pub(crate) async fn refusal(&self, executor: &dyn Executor) -> Option<String> {
        if !self.limits().needs_cgroup() {
            return None;
        }
        // If it does not say, the start will.
        let support = executor.environment().await.ok()?.limits?;
        self.unenforceable(&support)
    }

    /// Names the flags whose limits an executor cannot enforce, with the reasons.
    fn unenforceable(&self, support: &LimitSupport) -> Option<String> {
        let flags = [
            ("--memory", self.memory.is_some(), LimitName::MemoryBytes),
            ("--swap", self.swap.is_some(), LimitName::SwapBytes),
            ("--cpus", self.cpus.is_some(), LimitName::Cpus),
            ("--pids", self.pids.is_some(), LimitName::Processes),
        ];
        let set = flags.into_iter().filter(|(_, is_set, _)| *is_set);
        let mut by_reason: Vec<(&String, Vec<&str>)> = Vec::new();
        for (flag, _, name) in set {
            let Some(reason) = support.unenforceable.get(name.as_str()) else {
                continue;
            };
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, flags)) => flags.push(flag),
                None => by_reason.push((reason, vec![flag])),
            }
        }
        let lines = by_reason.iter();
        let lines = lines.map(|(reason, flags)| format!("{}: {reason}", flags.join(", ")));
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| {
            let lines = lines.join("; ");
            format!("limit cannot be enforced on this executor: {lines}")
        })
    }

    /// Says which limit ended a command, if one has.
    pub(crate) fn exceeded(&self, exit: &Exit) -> Option<String> {
        match (exit.ended_by?, self) {
            (
                EndedBy::Oom,
                LimitArgs {
                    memory: Some(bytes),
                    ..
                },
            ) => Some(format!(
                "the memory limit of {} ended the command",
                byte_size(*bytes)
            )),
            (EndedBy::Oom, _) => Some("the lack of memory ended the command".to_owned()),
            (
                EndedBy::CpuLimit,
                LimitArgs {
                    cpu_time: Some(time),
                    ..
                },
            ) => Some(format!(
                "the CPU time limit of {} ended the command",
                format_time(*time)
            )),
            (
                EndedBy::Signal | EndedBy::Exit,
                LimitArgs {
                    file_size: Some(bytes),
                    ..
                },
            ) if exit.code == FILE_SIZE_EXCEEDED => Some(format!(
                "the file size limit of {} ended the command",
                byte_size(*bytes)
            )),
            _ => None,
        }
    }
}

/// The limit that ended a process, if one has and its size is not known.
pub(crate) fn ended_by_limit(ended_by: Option<EndedBy>) -> Option<&'static str> {
    match ended_by? {
        EndedBy::Oom => Some("out of memory"),
        EndedBy::CpuLimit => Some("CPU time limit"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_limits_that_cannot_be_enforced_are_named_by_their_flags() {
        let args = LimitArgs {
            memory: Some(1),
            cpus: Some(1.0),
            swap: Some(1),
            cpu_time: Some(Duration::from_secs(1)),
            ..LimitArgs::default()
        };
        let reasons = [
            ("memoryBytes", "no cgroup"),
            ("cpus", "no cgroup"),
            ("swapBytes", "no swap"),
            ("processes", "no cgroup"),
        ];
        let support = LimitSupport {
            enforceable: Vec::new(),
            unenforceable: reasons
                .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
                .into(),
        };
        assert_eq!(
            args.unenforceable(&support).unwrap(),
            "limit cannot be enforced on this executor: --memory, --cpus: no cgroup; --swap: no swap"
        );
        assert_eq!(args.unenforceable(&LimitSupport::default()), None);
        assert_eq!(LimitArgs::default().unenforceable(&support), None);
    }

    #[test]
    fn exceeded_limit_is_named() {
        let args = LimitArgs {
            memory: Some(2 << 30),
            cpu_time: Some(Duration::from_secs(30)),
            file_size: Some(1 << 20),
            ..LimitArgs::default()
        };
        let exceeded = |ended_by, code| {
            let ended_by = Some(ended_by);
            let exit = Exit {
                code,
                ended_by,
                ..Exit::default()
            };
            args.exceeded(&exit).unwrap_or_default()
        };
        assert_eq!(
            exceeded(EndedBy::Oom, 137),
            "the memory limit of 2.0 GiB ended the command"
        );
        assert_eq!(
            exceeded(EndedBy::CpuLimit, 152),
            "the CPU time limit of 30s ended the command"
        );
        assert_eq!(
            exceeded(EndedBy::Signal, 153),
            "the file size limit of 1.0 MiB ended the command"
        );
        assert_eq!(exceeded(EndedBy::Signal, 137), "");
        assert_eq!(exceeded(EndedBy::Exit, 1), "");
    }
}

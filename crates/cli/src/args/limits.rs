//! `--memory`, `--cpus` and the other limits of a command.

use std::time::Duration;

use outpost_client::{EndedBy, Exit, ResourceLimits};

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

#[cfg(test)]
mod tests {
    use super::*;

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

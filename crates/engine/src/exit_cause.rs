//! Decides what ended a process. Pure.

use outpost_process::Exit;
use outpost_types::{EndedBy, ResourceUsage};

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
/// The exit code of a shell or a wrapper whose child was ended by signal N is this plus N.
const SIGNALLED: i32 = 128;
/// The highest signal.
const MAX_SIGNAL: i32 = 64;

/// The known facts about the end of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) exit: Exit,
    pub(crate) timed_out: bool,
    /// The termination of the process was requested.
    pub(crate) terminated: bool,
    /// Another program reports its exit and passes on a signal as an exit code.
    pub(crate) wrapped: bool,
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) usage: Option<ResourceUsage>,
}

impl Ending {
    /// The cause. `is_oom_killed` is called only if it may decide.
    pub(crate) fn cause(&self, is_oom_killed: impl FnOnce() -> bool) -> EndedBy {
        if self.timed_out {
            return EndedBy::Timeout;
        }
        if self.terminated {
            return EndedBy::Terminated;
        }
        let passed_on = self.exit.code() - SIGNALLED;
        let signal = match self.exit {
            Exit::Lost => return EndedBy::Lost,
            Exit::Signal(signal) => Some(signal),
            Exit::Code(_) if self.wrapped => {
                Some(passed_on).filter(|signal| (1..=MAX_SIGNAL).contains(signal))
            }
            Exit::Code(_) => None,
        };
        if signal == Some(SIGKILL) && is_oom_killed() {
            return EndedBy::Oom;
        }
        if let Some(limit) = self.cpu_seconds {
            let used = self.usage.map(|usage| usage.cpu_ms);
            let limit = limit.saturating_mul(1000);
            // A shell passes on the signal of its child as an exit code. The usage distinguishes such a
            // code from a code that a program chose; the usage counts ticks, so it may be too low.
            let is_reached = match signal {
                Some(SIGKILL) => used.is_some_and(|used| used >= limit),
                _ if passed_on == SIGXCPU => used.is_none_or(|used| used >= limit / 2),
                _ => false,
            };
            if is_reached {
                return EndedBy::CpuLimit;
            }
        }
        match signal {
            Some(_) => EndedBy::Signal,
            None => EndedBy::Exit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(exit: Exit) -> Ending {
        Ending {
            exit,
            timed_out: false,
            terminated: false,
            wrapped: false,
            cpu_seconds: None,
            usage: None,
        }
    }

    #[test]
    fn cause_is_the_most_specific_one() {
        let killed = ending(Exit::Signal(SIGKILL));
        let limited = Ending {
            cpu_seconds: Some(1),
            ..killed
        };
        let busy = Some(ResourceUsage {
            cpu_ms: 1900,
            ..ResourceUsage::default()
        });
        for (ending, oom, cause) in [
            (ending(Exit::Code(0)), false, EndedBy::Exit),
            (ending(Exit::Code(137)), true, EndedBy::Exit),
            (ending(Exit::Lost), false, EndedBy::Lost),
            (killed, false, EndedBy::Signal),
            (killed, true, EndedBy::Oom),
            (
                Ending {
                    terminated: true,
                    ..killed
                },
                true,
                EndedBy::Terminated,
            ),
            (
                Ending {
                    timed_out: true,
                    terminated: true,
                    ..killed
                },
                true,
                EndedBy::Timeout,
            ),
            (
                Ending {
                    wrapped: true,
                    ..ending(Exit::Code(137))
                },
                true,
                EndedBy::Oom,
            ),
            (
                Ending {
                    wrapped: true,
                    ..ending(Exit::Code(143))
                },
                false,
                EndedBy::Signal,
            ),
            (limited, false, EndedBy::Signal),
            (
                Ending {
                    usage: busy,
                    ..limited
                },
                false,
                EndedBy::CpuLimit,
            ),
            (
                Ending {
                    exit: Exit::Signal(SIGXCPU),
                    ..limited
                },
                false,
                EndedBy::CpuLimit,
            ),
            (
                Ending {
                    exit: Exit::Code(152),
                    ..limited
                },
                false,
                EndedBy::CpuLimit,
            ),
            (
                Ending {
                    exit: Exit::Code(152),
                    usage: Some(ResourceUsage::default()),
                    ..limited
                },
                false,
                EndedBy::Exit,
            ),
            (ending(Exit::Signal(SIGXCPU)), false, EndedBy::Signal),
        ] {
            assert_eq!(ending.cause(|| oom), cause, "{ending:?}");
        }
    }
}

//! What the stages say to whoever waits for the program.

use std::fmt;

/// One message on the line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The program is executed next. If that works, the line ends.
    Ready,
    /// This step failed, for this reason of the system's.
    Failed(Step, i32),
}

/// What a stage does before there is a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Hearing what to do.
    Orders,
    /// Starting bubblewrap, which the server says itself.
    Bubblewrap,
    /// Mounting what the plan grants.
    Mounts,
    /// Comparing what is mounted with the plan.
    Places,
    /// Entering the program's directory.
    Directory,
    /// Giving up privileges.
    Privileges,
    /// Setting up Landlock.
    Landlock,
    /// Setting up the filter of system calls.
    Seccomp,
    /// Becoming the program.
    Execute,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Orders => "hear the plan",
            Step::Bubblewrap => "execute bwrap",
            Step::Mounts => "mount what is granted",
            Step::Places => "find what was planned with where it was",
            Step::Directory => "enter the directory",
            Step::Privileges => "give up privileges",
            Step::Landlock => "set up Landlock",
            Step::Seccomp => "filter system calls",
            Step::Execute => "execute the program",
        })
    }
}

/// How long one is.
pub(super) const LENGTH: usize = 5;

const STEPS: [Step; 9] = [
    Step::Orders,
    Step::Bubblewrap,
    Step::Mounts,
    Step::Places,
    Step::Directory,
    Step::Privileges,
    Step::Landlock,
    Step::Seccomp,
    Step::Execute,
];

impl Report {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        let (tag, errno) = match self {
            Report::Ready => (0, 0),
            Report::Failed(step, errno) => {
                let at = STEPS.iter().position(|one| *one == step);
                (at.unwrap_or_default() + 1, errno)
            }
        };
        let [a, b, c, d] = errno.to_le_bytes();
        [u8::try_from(tag).unwrap_or_default(), a, b, c, d]
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [tag, errno @ ..] = <[u8; LENGTH]>::try_from(bytes).ok()?;
        let Some(step) = usize::from(tag).checked_sub(1) else {
            return Some(Report::Ready);
        };
        let step = STEPS.get(step)?;
        Some(Report::Failed(*step, i32::from_le_bytes(errno)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_through() {
        let failures = STEPS.into_iter().map(|step| Report::Failed(step, 13));
        for report in failures.chain([Report::Ready]) {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[10, 0, 0, 0, 0]), None);
        assert_eq!(Report::decode(b""), None);
    }
}

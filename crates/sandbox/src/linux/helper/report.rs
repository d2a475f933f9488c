//! Messages from the helper to the server about the setup of the sandbox.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::encoding;

/// One message from the helper.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) enum Report {
    /// Setup is complete and the program is executed next. The helper's end of the channel closes
    /// when that succeeds.
    Ready,
    /// This step failed with this errno.
    Failed(Step, i32),
}

/// A step in the start of a confined program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Reading the configuration.
    Config,
    /// Starting bubblewrap. The server itself reports this failure.
    Bubblewrap,
    /// Mounting the plan.
    Mounts,
    /// Comparing the mounts with the plan.
    MountCheck,
    /// Entering the working directory.
    WorkingDirectory,
    /// Dropping capabilities.
    Privileges,
    /// Restricting itself with Landlock.
    Landlock,
    /// Installing the seccomp filter.
    Seccomp,
    /// Executing the program.
    Execute,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Config => "read the sandbox plan",
            Step::Bubblewrap => "execute bwrap",
            Step::Mounts => "mount the sandbox's files",
            Step::MountCheck => "verify mounts",
            Step::WorkingDirectory => "enter the working directory",
            Step::Privileges => "drop privileges",
            Step::Landlock => "set up Landlock",
            Step::Seccomp => "install the seccomp filter",
            Step::Execute => "execute the program",
        })
    }
}

/// An upper bound for the length of an encoded report.
pub(super) const MAX_LENGTH: usize = 16;

impl Report {
    pub(super) fn encode(self) -> io::Result<Vec<u8>> {
        encoding::encode(&self)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        encoding::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_roundtrips() {
        let failed = |errno| Report::Failed(Step::Execute, errno);
        let steps = [
            Step::Config,
            Step::Bubblewrap,
            Step::Mounts,
            Step::MountCheck,
            Step::WorkingDirectory,
            Step::Privileges,
            Step::Landlock,
            Step::Seccomp,
            Step::Execute,
        ];
        let all_steps = steps.map(|step| Report::Failed(step, i32::MIN));
        for report in [Report::Ready, failed(13)].into_iter().chain(all_steps) {
            let bytes = report.encode().expect("encode");
            assert!(bytes.len() <= MAX_LENGTH);
            assert_eq!(Report::decode(&bytes), Some(report));
        }
        assert_eq!(Report::decode(b""), None);
        let mut unknown = failed(13).encode().expect("encode");
        unknown[1] = 9;
        assert_eq!(Report::decode(&unknown), None);
    }
}

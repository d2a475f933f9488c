//! Why a process that was to be confined is not started.

use std::io;
use std::time::Duration;

use crate::linux::{PrepareError, Step};
use crate::planning::{Failing, PlanError};

/// Why a process that was to be confined is not started. The words are those that clients know, so
/// they are the same wherever somebody is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The policy can't be bound to this host.
    #[error("{}: {why}", words(.0.failing()), why = .0)]
    Plan(#[from] PlanError),
    /// The plan can't be enforced here, or not now.
    #[error("{}: {why}", words(.0.failing()), why = .0)]
    Prepare(#[from] PrepareError),
    /// A stage between the server and the program has failed.
    #[error("{}: cannot {step}{}: {}", words(Failing::Preparation), in_words(said), io::Error::from_raw_os_error(*errno))]
    Stage {
        /// What it was doing.
        step: Step,
        /// What the system said.
        errno: i32,
        /// What it had to say itself, if anything.
        said: String,
    },
    /// The stages went without a word of their own.
    #[error("{}: {said}", words(Failing::Preparation))]
    Lost {
        /// What was found on its streams.
        said: String,
    },
    /// The stages didn't come to an end.
    #[error("{}: it took longer than {within:?}", words(Failing::Preparation))]
    Slow {
        /// How long they had.
        within: Duration,
    },
    /// Nobody planned it: the thread that was to do so has gone.
    #[error("{}: the plan was lost", words(Failing::Preparation))]
    Unplanned,
}

impl Refusal {
    /// Whether something has come or gone between two looks at it, so that it may be otherwise when it is
    /// tried again.
    #[must_use]
    pub fn is_of_the_moment(&self) -> bool {
        match self {
            Refusal::Plan(PlanError::Look { why, .. }) => why.kind() == io::ErrorKind::NotFound,
            Refusal::Prepare(PrepareError::Placeholder(error)) => error.is_of_the_moment(),
            Refusal::Stage {
                step: Step::Mounts | Step::Places,
                errno,
                ..
            } => [libc::ENOENT, libc::ESTALE, libc::ENOTDIR].contains(errno),
            _ => false,
        }
    }

    /// The stages went; this is what was found of them.
    #[must_use]
    pub fn lost(said: String) -> Self {
        match said.is_empty() {
            true => Refusal::Lost {
                said: "it ended without a word".to_owned(),
            },
            false => Refusal::Lost { said },
        }
    }
}

fn in_words(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(" ({said})"),
    }
}

fn words(failing: Failing) -> &'static str {
    match failing {
        Failing::Intent => "sandbox intent cannot be enforced on this executor",
        Failing::Preparation => "failed to prepare process sandbox",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlaceholderError, Unenforceable};

    #[test]
    fn what_comes_and_goes_is_of_the_moment() {
        let stage = |step, errno| Refusal::Stage {
            step,
            errno,
            said: String::new(),
        };
        assert!(stage(Step::Mounts, libc::ENOENT).is_of_the_moment());
        assert!(stage(Step::Places, libc::ESTALE).is_of_the_moment());
        assert!(!stage(Step::Mounts, libc::EACCES).is_of_the_moment());
        assert!(!stage(Step::Execute, libc::ENOENT).is_of_the_moment());
        let appeared = PlaceholderError::Appeared("/ws/.git".into());
        assert!(Refusal::from(PrepareError::from(appeared)).is_of_the_moment());
        let missing = Refusal::from(PlanError::NothingToWrite("/ws".into()));
        assert!(!missing.is_of_the_moment(), "it was never there");
    }

    #[test]
    fn the_words_say_on_whose_side_it_fails() {
        let words = [
            Refusal::from(PrepareError::from(Unenforceable::NoBubblewrap)),
            PlanError::GrantingPattern("**".into()).into(),
            PlanError::NothingToWrite("/x".into()).into(),
        ]
        .map(|refusal| refusal.to_string());
        assert_eq!(
            words,
            [
                "sandbox intent cannot be enforced on this executor: bwrap isn't found on the server's PATH: install the package bubblewrap",
                "sandbox intent cannot be enforced on this executor: the pattern \"**\" can only deny",
                "failed to prepare process sandbox: /x is to be written and does not exist",
            ]
        );
    }
}

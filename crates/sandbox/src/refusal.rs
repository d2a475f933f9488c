//! Why a process that was to be confined is not started.

use crate::planning::{Failing, PlanError};

/// Why a process that was to be confined is not started. The words are those that clients know, so
/// they are the same wherever somebody is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The policy can't be bound to this host.
    #[error("{}: {why}", words(.0.failing()), why = .0)]
    Plan(#[from] PlanError),
    /// Nothing here can confine a process.
    #[error(
        "{}: nothing on this host can confine a process",
        words(Failing::Intent)
    )]
    NoMeans,
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

    #[test]
    fn the_words_say_on_whose_side_it_fails() {
        let words = [
            Refusal::NoMeans,
            PlanError::GrantingPattern("**".into()).into(),
            PlanError::NothingToWrite("/x".into()).into(),
        ]
        .map(|refusal| refusal.to_string());
        assert_eq!(
            words,
            [
                "sandbox intent cannot be enforced on this executor: nothing on this host can confine a process",
                "sandbox intent cannot be enforced on this executor: the pattern \"**\" can only deny",
                "failed to prepare process sandbox: /x is to be written and does not exist",
            ]
        );
    }
}

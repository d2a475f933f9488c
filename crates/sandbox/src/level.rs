//! How much enforcement an operator insists on.

/// By what means processes are confined. It is the operator's choice alone: nothing here falls back
/// from one to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Namespaces, with seccomp and Landlock inside: all that is promised.
    #[default]
    Namespaces,
    /// Landlock and seccomp without namespaces, for hosts that forbid those. A weaker promise.
    Landlock,
}

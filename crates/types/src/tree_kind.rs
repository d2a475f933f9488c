//! Kinds of process trees.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mechanism that tracks the descendants of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum TreeKind {
    /// A cgroup per process. No descendant can leave it, and the kernel kills all of it at once.
    Cgroup,
    /// A subreaper per process, which inherits its orphans and can kill all descendants. It also
    /// ends them when the server dies. Earlier servers call it `keeper`.
    #[serde(alias = "keeper")]
    Subreaper,
    /// The process group, the session, and the parent links in `/proc`. A descendant that started
    /// its own session and lost its parent can't be found.
    #[default]
    Group,
}

crate::string_enum!(TreeKind);

impl fmt::Display for TreeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TreeKind::Cgroup => "cgroup",
            TreeKind::Subreaper => "subreaper",
            TreeKind::Group => "group",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_name_of_the_subreaper_is_read() {
        let kind: TreeKind = serde_json::from_str("\"keeper\"").expect("a kind");
        assert_eq!(kind, TreeKind::Subreaper);
        assert_eq!(serde_json::to_string(&kind).expect("JSON"), "\"subreaper\"");
    }
}

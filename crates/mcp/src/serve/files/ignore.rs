//! Files that a search skips: hidden ones and those in `.gitignore`.

use std::{path::Path, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

/// Skipped always.
const GIT_DIRECTORY: &str = ".git";
pub(in crate::serve) const GITIGNORE: &str = ".gitignore";

/// The ignore rules of a directory, including those of its parents.
#[derive(Clone, Debug)]
pub(in crate::serve) struct IgnoreRules {
    include_hidden: bool,
    /// The outermost first.
    gitignores: Vec<Arc<Gitignore>>,
}

impl IgnoreRules {
    /// Returns rules without any `.gitignore`.
    pub(in crate::serve) fn new(include_hidden: bool) -> Self {
        IgnoreRules {
            include_hidden,
            gitignores: Vec::new(),
        }
    }

    /// Adds the `.gitignore` of a directory. Invalid lines are ignored, as in git.
    #[must_use]
    pub(in crate::serve) fn with_gitignore(&self, directory: &Path, text: &str) -> Self {
        let mut builder = GitignoreBuilder::new(directory);
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
        let mut rules = self.clone();
        rules.gitignores.extend(builder.build().map(Arc::new));
        rules
    }

    /// Reports whether an entry is skipped.
    pub(in crate::serve) fn ignores(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name == GIT_DIRECTORY.as_bytes() || (!self.include_hidden && name.starts_with(b".")) {
            return true;
        }
        for gitignore in self.gitignores.iter().rev() {
            match gitignore.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignores(rules: &IgnoreRules, path: &str, is_directory: bool) -> bool {
        rules.ignores(Path::new(path), is_directory)
    }

    #[test]
    fn skips_git_directory_and_hidden_files() {
        let default = IgnoreRules::new(false);
        assert!(ignores(&default, "/r/.git", true));
        assert!(ignores(&default, "/r/.env", false));
        assert!(!ignores(&default, "/r/a.git", false));
        let hidden = IgnoreRules::new(true);
        assert!(ignores(&hidden, "/r/.git", true));
        assert!(!ignores(&hidden, "/r/.env", false));
    }

    #[test]
    fn innermost_gitignore_decides() {
        let root =
            IgnoreRules::new(false).with_gitignore(Path::new("/r"), "target/\n*.log\n/only-here\n");
        assert!(ignores(&root, "/r/target", true));
        assert!(!ignores(&root, "/r/target", false), "a file of that name");
        assert!(ignores(&root, "/r/only-here", false));
        let sub = root.with_gitignore(Path::new("/r/sub"), "!keep.log\n");
        assert!(ignores(&sub, "/r/sub/other.log", false));
        assert!(!ignores(&sub, "/r/sub/keep.log", false));
        assert!(!ignores(&sub, "/r/sub/only-here", false));
    }

    #[test]
    fn invalid_lines_are_ignored() {
        let rules = IgnoreRules::new(false).with_gitignore(Path::new("/r"), "a[\n# words\n\nb\n");
        assert!(ignores(&rules, "/r/b", false));
        assert!(!ignores(&rules, "/r/words", false));
    }
}

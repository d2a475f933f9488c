//! What a search leaves alone.

use std::{path::Path, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

/// Where the history is, and nothing that anybody looks for.
const HISTORY: &str = ".git";
/// Where a directory says what in it isn't worth looking at.
pub(in crate::serve) const RULES: &str = ".gitignore";

/// What is left alone in a directory: what it says itself, and what those above
/// it say.
#[derive(Clone, Debug)]
pub(in crate::serve) struct Rules {
    hidden: bool,
    innermost: Option<Arc<Layer>>,
}

#[derive(Debug)]
struct Layer {
    rules: Gitignore,
    above: Option<Arc<Layer>>,
}

impl Rules {
    /// Nothing is said yet; with `hidden`, what begins with a dot is looked at.
    pub(in crate::serve) fn new(hidden: bool) -> Self {
        Rules {
            hidden,
            innermost: None,
        }
    }

    /// The same for a directory that says more. Lines that make no sense say
    /// nothing, as git has it.
    #[must_use]
    pub(in crate::serve) fn below(&self, directory: &Path, text: &str) -> Self {
        let mut builder = GitignoreBuilder::new(directory);
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
        let Ok(rules) = builder.build() else {
            return self.clone();
        };
        Rules {
            hidden: self.hidden,
            innermost: Some(Arc::new(Layer {
                rules,
                above: self.innermost.clone(),
            })),
        }
    }

    /// Whether something that was found is left alone.
    pub(in crate::serve) fn skip(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name == HISTORY.as_bytes() || (!self.hidden && name.starts_with(b".")) {
            return true;
        }
        let mut layer = self.innermost.as_ref();
        while let Some(Layer { rules, above }) = layer.map(Arc::as_ref) {
            match rules.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => layer = above.as_ref(),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(rules: &Rules, path: &str, is_directory: bool) -> bool {
        rules.skip(Path::new(path), is_directory)
    }

    #[test]
    fn history_is_left_alone_and_hidden_things_unless_asked_for() {
        let plain = Rules::new(false);
        assert!(skipped(&plain, "/r/.git", true));
        assert!(skipped(&plain, "/r/.env", false));
        assert!(!skipped(&plain, "/r/a.git", false));
        let hidden = Rules::new(true);
        assert!(skipped(&hidden, "/r/.git", true));
        assert!(!skipped(&hidden, "/r/.env", false));
    }

    #[test]
    fn whoever_is_nearest_decides() {
        let root = Rules::new(false).below(Path::new("/r"), "target/\n*.log\n/only-here\n");
        assert!(skipped(&root, "/r/target", true));
        assert!(!skipped(&root, "/r/target", false), "a file of that name");
        assert!(skipped(&root, "/r/only-here", false));
        let sub = root.below(Path::new("/r/sub"), "!keep.log\n");
        assert!(skipped(&sub, "/r/sub/other.log", false));
        assert!(!skipped(&sub, "/r/sub/keep.log", false));
        assert!(!skipped(&sub, "/r/sub/only-here", false));
    }

    #[test]
    fn nonsense_says_nothing() {
        let rules = Rules::new(false).below(Path::new("/r"), "a[\n# words\n\nb\n");
        assert!(skipped(&rules, "/r/b", false));
        assert!(!skipped(&rules, "/r/words", false));
    }
}

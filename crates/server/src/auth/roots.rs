//! The directories that a principal works below. Blocks on the file system.

use std::{
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

use super::Root;

/// A path that a request uses.
#[derive(Clone, Debug)]
pub(crate) struct RequestPath {
    pub(crate) path: PathBuf,
    /// The request is about the entry itself, also if it is a symbolic link.
    pub(crate) is_entry: bool,
}

impl RequestPath {
    /// A path whose symbolic links are followed.
    pub(crate) fn followed(path: impl Into<PathBuf>) -> Self {
        RequestPath {
            path: path.into(),
            is_entry: false,
        }
    }
}

/// Returns the roots that are directories now. One that was replaced by a symbolic link is none.
pub(crate) fn existing(roots: &[Root]) -> Vec<Root> {
    let exists = |root: &&Root| root.real.canonicalize().is_ok_and(|real| real == root.real);
    roots.iter().filter(exists).cloned().collect()
}

/// Returns the first path that does not lie below one of `roots`, with all links resolved. A path that
/// cannot be resolved lies nowhere.
pub(crate) fn find_outside(roots: &[Root], paths: &[RequestPath]) -> Option<PathBuf> {
    let is_below = |used: &RequestPath| {
        let real = match used.is_entry {
            true => resolve_parent(&used.path),
            false => resolve(&used.path),
        };
        real.is_some_and(|real| roots.iter().any(|root| real.starts_with(&root.real)))
    };
    let outside = paths.iter().find(|used| !is_below(used));
    outside.map(|used| used.path.clone())
}

/// Resolves a path as far as it exists.
fn resolve(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Some(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A dangling link leads to where something may be created.
            let is_link = path.symlink_metadata().is_ok();
            if is_link { None } else { resolve_parent(path) }
        }
        Err(_) => None,
    }
}

/// Resolves all but the last component.
fn resolve_parent(path: &Path) -> Option<PathBuf> {
    match path.components().next_back()? {
        Component::Normal(name) => Some(resolve(path.parent()?)?.join(name)),
        Component::RootDir => Some(path.to_owned()),
        // `..` of something that does not exist.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn at(real: PathBuf) -> Root {
        Root {
            named: real.clone(),
            real,
        }
    }

    #[test]
    fn paths_are_judged_by_where_they_lead() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let root = base.join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::create_dir(base.join("rooted")).unwrap();
        symlink(&base, root.join("out")).unwrap();
        symlink(root.join("a"), base.join("in")).unwrap();
        symlink(base.join("missing"), root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let roots = existing(&[at(root.clone()), at(base.join("nowhere"))]);
        assert_eq!(roots, [at(root.clone())]);
        let is_outside = |path: &str, is_entry| {
            let path = base.join(path);
            find_outside(&roots, &[RequestPath { path, is_entry }]).is_some()
        };
        for inside in [
            "root",
            "root/a",
            "root/new/deep",
            "in",
            "in/new",
            "root/a/..",
            "root/out/root",
            "rooted/../root/a",
        ] {
            assert!(!is_outside(inside, false), "{inside}");
        }
        for outside in [
            "",
            "rooted",
            "root/..",
            "root/out",
            "root/out/x",
            "root/dangling",
            "root/dangling/x",
            "root/loop",
            "root/new/../../x",
            "root/missing/../../rooted",
            "in/../../rooted",
        ] {
            assert!(is_outside(outside, false), "{outside}");
        }
        for link in ["root/out", "root/dangling", "root/loop"] {
            assert!(!is_outside(link, true), "{link}");
        }
        assert!(is_outside("root/out/x", true));
        assert!(find_outside(&roots, &[RequestPath::followed("/")]).is_some());
        let both = [root.join("a"), base.join("x")].map(RequestPath::followed);
        assert_eq!(find_outside(&roots, &both), Some(base.join("x")));
    }

    #[test]
    fn replaced_root_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let root = base.join("root");
        fs::create_dir(&root).unwrap();
        assert_eq!(existing(&[at(root.clone())]).len(), 1);
        fs::rename(&root, base.join("moved")).unwrap();
        symlink("/", &root).unwrap();
        assert!(existing(&[at(root)]).is_empty());
    }
}

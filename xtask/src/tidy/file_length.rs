//! Bounds the length of files. A long file usually contains a second concept.

use super::finding::Finding;
use super::source::File;

/// Lines, without those compiled for tests only.
const LIMIT: usize = 400;

/// Excepted files: path and reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

pub(super) fn check(file: &File) -> Vec<Finding> {
    find(file, EXCEPTIONS)
}

fn find(file: &File, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let length = length(file);
    let excepted = exceptions.iter().any(|(path, _)| *path == file.path);
    let what = match (length > LIMIT, excepted) {
        (true, false) => {
            format!("{length} lines without its tests, over {LIMIT}: split it by concept")
        }
        (false, true) => {
            format!("{length} lines need no exception: remove it from tidy's table")
        }
        _ => return Vec::new(),
    };
    vec![Finding::new(file, 1, what)]
}

/// Counts lines. A file with nothing but tests counts in full, unless it is the test module of
/// another file.
fn length(file: &File) -> usize {
    if file.lines.iter().all(|line| line.test) && !file.path.ends_with("/tests.rs") {
        file.lines.len()
    } else {
        file.lines.iter().filter(|line| !line.test).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        "fn a() {}\n".repeat(count)
    }

    #[test]
    fn long_file_is_found() {
        for path in ["crates/x/src/a.rs", "tests/a.rs", "crates/testkit/src/a.rs"] {
            assert_eq!(find(&File::new(path, lines(LIMIT)), &[]), [], "{path}");
            assert_eq!(
                find(&File::new(path, lines(LIMIT + 1)), &[]).len(),
                1,
                "{path}"
            );
        }
    }

    #[test]
    fn unit_tests_do_not_count() {
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(LIMIT),
            lines(LIMIT)
        );
        assert_eq!(find(&File::new("crates/x/src/a.rs", text), &[]), []);
        let long = File::new("crates/x/src/a/tests.rs", lines(LIMIT + 1));
        assert_eq!(find(&long, &[]), []);
    }

    #[test]
    fn unneeded_exception_is_found() {
        let exceptions = [("a.rs", "a table")];
        assert_eq!(find(&File::new("a.rs", lines(LIMIT + 1)), &exceptions), []);
        assert_eq!(find(&File::new("a.rs", lines(LIMIT)), &exceptions).len(), 1);
    }

    #[test]
    fn other_languages_are_not_measured() {
        assert_eq!(find(&File::new("a.md", lines(LIMIT + 1)), &[]), []);
    }
}

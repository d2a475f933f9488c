//! Looks up a program in `PATH`, by the rules of `execvp`.

use crate::strings::{HasNul, Strings};

/// Searched if the child has no `PATH`. Unlike `confstr(_CS_PATH)`, which is `/bin:/usr/bin`, it includes
/// locally installed programs. Login shells start with the same value.
pub(crate) const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Returns the paths to try, in order. Relative ones are resolved in the child, in its working
/// directory.
pub(crate) fn candidates(program: &[u8], path: Option<&[u8]>) -> Result<Strings, HasNul> {
    let mut candidates = Strings::default();
    if program.is_empty() || program.contains(&b'/') {
        candidates.push(&[program])?;
        return Ok(candidates);
    }
    for directory in path.unwrap_or(DEFAULT_PATH).split(|byte| *byte == b':') {
        match directory {
            // An empty entry means the working directory.
            [] => candidates.push(&[b"./", program])?,
            [.., b'/'] => candidates.push(&[directory, program])?,
            _ => candidates.push(&[directory, b"/", program])?,
        }
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(program: &str, path: Option<&str>) -> Vec<String> {
        let Ok(strings) = candidates(program.as_bytes(), path.map(str::as_bytes)) else {
            panic!("no NUL in {program} or {path:?}");
        };
        strings
            .iter()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect()
    }

    #[test]
    fn slash_skips_search() {
        assert_eq!(paths("./ls", Some("/bin")), ["./ls"]);
        assert_eq!(paths("/x/ls", Some("/bin")), ["/x/ls"]);
        assert_eq!(paths("", Some("/bin")), [""]);
    }

    #[test]
    fn path_is_searched_in_order() {
        assert_eq!(paths("ls", Some("/a:b:/c/")), ["/a/ls", "b/ls", "/c/ls"]);
        assert_eq!(paths("ls", Some(":/a:")), ["./ls", "/a/ls", "./ls"]);
        assert_eq!(paths("ls", Some("")), ["./ls"]);
    }

    #[test]
    fn default_is_used_without_path() {
        assert_eq!(
            paths("ls", None),
            ["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"]
        );
    }
}

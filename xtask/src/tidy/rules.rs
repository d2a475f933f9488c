//! The rules for lines and lengths of Rust files.

use super::source::{File, Finding, Line, after_word, has_word};

/// The most lines of a file, without those compiled for tests only. A long file usually contains a
/// second concept.
const MAX_LINES: usize = 400;

/// Openings that leave the reader to guess the subject of the sentence.
const BANNED_OPENINGS: &[&str] = &[
    "What", "Who", "Whose", "Whoever", "Nobody", "Somebody", "The same",
];

/// The crates that make system calls. `unsafe` is nowhere else, so that all of it can be reviewed.
const UNSAFE_CRATES: &[&str] = &["crates/process/", "crates/sandbox/"];

/// Rejects files that are too long. A file with nothing but tests counts in full, unless it is the
/// test module of another file.
pub(super) fn file_length(file: &File) -> Vec<Finding> {
    let mut length = file.lines.iter().filter(|line| !line.test).count();
    if length == 0 && !file.path.ends_with("/tests.rs") {
        length = file.lines.len();
    }
    if length <= MAX_LINES {
        return Vec::new();
    }
    let what = format!("{length} lines without its tests, over {MAX_LINES}: split it by concept");
    vec![Finding::new(file, 1, what)]
}

/// Rejects comments that open with a pronoun instead of their subject.
pub(super) fn comment_openings(file: &File) -> Vec<Finding> {
    let find = |(number, line): (usize, &Line)| {
        let text = line.comment.trim_start_matches(['/', '!']).trim_start();
        let in_word = |c: char| c.is_alphanumeric() || c == '\'';
        let opens = |word: &&&str| {
            text.strip_prefix(**word)
                .is_some_and(|rest| !rest.starts_with(in_word))
        };
        let opening = BANNED_OPENINGS.iter().find(opens)?;
        let what = format!(
            "comment opens with \"{opening}\": start with the subject, as in \"Counts active \
             connections\""
        );
        Some(Finding::new(file, number, what))
    };
    file.numbered().filter_map(find).collect()
}

/// Rejects ignored tests.
pub(super) fn ignored_tests(file: &File) -> Vec<Finding> {
    let what = "ignored test: repair it, or remove it and say why";
    file.find(what, |line| line.code.contains("#[ignore"))
}

/// Rejects sleeps in tests without a reason. A test waits for an event, or explains the sleep:
/// `// sleep: <reason>`.
pub(super) fn sleeps(file: &File) -> Vec<Finding> {
    let what = "sleep in a test: wait for an event, or add `// sleep: <reason>`";
    let mut findings = Vec::new();
    let mut above = &Line::default();
    for (number, line) in file.numbered() {
        if line.test && calls_sleep(&line.code) && !has_reason(line) && !has_reason(above) {
            findings.push(Finding::new(file, number, what));
        }
        above = line;
    }
    findings
}

fn calls_sleep(code: &str) -> bool {
    ["sleep", "sleep_until", "sleep_ms"]
        .iter()
        .any(|name| after_word(code, name).any(|rest| rest.starts_with('(')))
}

fn has_reason(line: &Line) -> bool {
    let reason = line.comment.trim_start().strip_prefix("sleep:");
    reason.is_some_and(|reason| !reason.trim().is_empty())
}

/// Rejects `unsafe` outside the crates that make system calls.
pub(super) fn unsafe_code(file: &File) -> Vec<Finding> {
    if UNSAFE_CRATES.iter().any(|dir| file.path.starts_with(dir)) {
        return Vec::new();
    }
    let what = "`unsafe` is allowed in crates/process and crates/sandbox only";
    file.find(what, |line| has_word(&line.code, "unsafe"))
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
            assert_eq!(
                file_length(&File::new(path, lines(MAX_LINES))),
                [],
                "{path}"
            );
            assert_eq!(
                file_length(&File::new(path, lines(MAX_LINES + 1))).len(),
                1,
                "{path}"
            );
        }
    }

    #[test]
    fn unit_tests_do_not_count() {
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(MAX_LINES),
            lines(MAX_LINES)
        );
        assert_eq!(file_length(&File::new("crates/x/src/a.rs", text)), []);
        let long = File::new("crates/x/src/a/tests.rs", lines(MAX_LINES + 1));
        assert_eq!(file_length(&long), []);
    }

    #[test]
    fn other_languages_are_not_measured() {
        assert_eq!(file_length(&File::new("a.md", lines(MAX_LINES + 1))), []);
    }

    #[test]
    fn banned_opening_is_found_in_any_kind_of_comment() {
        for comment in [
            "//! What it is.",
            "/// Who reads.",
            "// The same, for pipes.",
            "    /// Nobody reads it.",
        ] {
            assert_eq!(
                comment_openings(&File::new("a.rs", comment)).len(),
                1,
                "{comment}"
            );
        }
    }

    #[test]
    fn other_openings_and_strings_are_accepted() {
        let text = "/// Whole messages.\n/// Counts what is left.\nlet a = \"// What\";\n";
        assert_eq!(comment_openings(&File::new("a.rs", text)), []);
    }

    #[test]
    fn ignored_test_is_found() {
        let text = "#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() {}\n";
        assert_eq!(ignored_tests(&File::new("a.rs", text)).len(), 2);
    }

    #[test]
    fn mention_in_text_is_accepted() {
        let text = "// #[ignore]\nlet ignore = \"#[ignore]\";\n";
        assert_eq!(ignored_tests(&File::new("a.rs", text)), []);
    }

    const WITHOUT_REASON: &[&str] = &[
        "thread::sleep(Duration::from_millis(5));",
        "tokio::time::sleep(SHORT).await;",
        "sleep(SHORT).await;",
        "sleep(SHORT).await; // sleep:",
        "sleep(SHORT).await; // a little",
    ];

    #[test]
    fn sleep_without_reason_is_found() {
        for line in WITHOUT_REASON {
            for path in [
                "tests/a.rs",
                "crates/x/tests/a.rs",
                "crates/testkit/src/a.rs",
            ] {
                assert_eq!(sleeps(&File::new(path, *line)).len(), 1, "{path} {line}");
            }
            let text = format!("#[cfg(test)]\nmod tests {{\n    fn a() {{ {line}\n }}\n}}\n");
            assert_eq!(
                sleeps(&File::new("crates/x/src/a.rs", text)).len(),
                1,
                "{line}"
            );
        }
    }

    #[test]
    fn reason_on_the_line_or_above_is_accepted() {
        let beside = "sleep(SHORT).await; // sleep: time is paused here\n";
        let above = "// sleep: the child needs a moment without any event\nsleep(SHORT).await;\n";
        let too_far = "// sleep: why\n\nsleep(SHORT).await;\n";
        assert_eq!(sleeps(&File::new("tests/a.rs", beside)), []);
        assert_eq!(sleeps(&File::new("tests/a.rs", above)), []);
        assert_eq!(sleeps(&File::new("tests/a.rs", too_far)).len(), 1);
    }

    #[test]
    fn sleeping_child_and_non_test_code_are_accepted() {
        let child = "start(\"sleep(60)\"); start(\"sleep 60\"); let sleep = 1;\n";
        assert_eq!(sleeps(&File::new("tests/a.rs", child)), []);
        assert_eq!(
            sleeps(&File::new("crates/x/src/a.rs", WITHOUT_REASON[0])),
            []
        );
    }

    #[test]
    fn unsafe_code_in_another_crate_is_found() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(
            unsafe_code(&File::new("crates/engine/src/a.rs", text)).len(),
            1
        );
        assert_eq!(unsafe_code(&File::new("tests/a.rs", text)).len(), 1);
        assert_eq!(unsafe_code(&File::new("crates/process/src/a.rs", text)), []);
    }

    #[test]
    fn forbid_attribute_is_accepted() {
        let text = "#![forbid(unsafe_code)] // no unsafe here\n";
        assert_eq!(
            unsafe_code(&File::new("crates/engine/src/lib.rs", text)),
            []
        );
    }
}

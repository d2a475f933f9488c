//! Rejects sleeps in tests without a reason. A test waits for an event, or explains the sleep:
//! `// sleep: <reason>`.

use super::finding::Finding;
use super::source::{File, Line, after_word};

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut above = &Line::default();
    for (number, line) in file.numbered() {
        if line.test && sleeps(&line.code) && !has_reason(line) && !has_reason(above) {
            let what = "sleep in a test: wait for an event, or add `// sleep: <reason>`";
            findings.push(Finding::new(file, number, what));
        }
        above = line;
    }
    findings
}

/// Returns true if the code calls a sleep function.
fn sleeps(code: &str) -> bool {
    ["sleep", "sleep_until", "sleep_ms"]
        .iter()
        .any(|name| after_word(code, name).any(|rest| rest.starts_with('(')))
}

fn has_reason(line: &Line) -> bool {
    let reason = line.comment.trim_start().strip_prefix("sleep:");
    reason.is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

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
                assert_eq!(check(&File::new(path, *line)).len(), 1, "{path} {line}");
            }
            let text = format!("#[cfg(test)]\nmod tests {{\n    fn a() {{ {line}\n }}\n}}\n");
            assert_eq!(
                check(&File::new("crates/x/src/a.rs", text)).len(),
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
        assert_eq!(check(&File::new("tests/a.rs", beside)), []);
        assert_eq!(check(&File::new("tests/a.rs", above)), []);
        assert_eq!(check(&File::new("tests/a.rs", too_far)).len(), 1);
    }

    #[test]
    fn sleeping_child_and_non_test_code_are_accepted() {
        let child = "start(\"sleep(60)\"); start(\"sleep 60\"); let sleep = 1;\n";
        assert_eq!(check(&File::new("tests/a.rs", child)), []);
        assert_eq!(
            check(&File::new("crates/x/src/a.rs", WITHOUT_REASON[0])),
            []
        );
    }
}

//! Exact text replacement.

use crate::serve::text;

/// Lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// Maximum number of changed lines shown.
const CHANGED_LINES: usize = 40;

/// The result of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Edited {
    pub(in crate::serve) text: String,
    /// Number of replacements.
    pub(in crate::serve) count: usize,
    /// The line of the first replacement, from 1.
    pub(in crate::serve) line: usize,
}

/// Why a text was not changed. The messages are for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum EditError {
    #[error("`old_text` is empty; create a new file with write_file")]
    Empty,
    #[error("`old_text` and `new_text` are equal")]
    Same,
    #[error(
        "`old_text` is not in the file; it must match exactly, including white space and line \
         breaks; read the file again with read_file"
    )]
    NotFound,
    #[error(
        "`old_text` is not in the file with these line ends: the file uses \"\\r\\n\"; use it in \
         `old_text` and `new_text` too"
    )]
    LineEnds,
    #[error(
        "`old_text` is in the file {count} times (first on line {line}, then on line {next}); add \
         surrounding lines to make it unique, or set `replace_all`"
    )]
    Ambiguous {
        count: usize,
        /// The line of the first occurrence.
        line: usize,
        /// The line of the second one.
        next: usize,
    },
    #[error("the result would have {size} bytes, and the limit is {max}")]
    TooLarge { size: u64, max: u64 },
}

/// Replaces the only occurrence of `old`, or all of them. Fails if the result would exceed
/// `max` bytes.
pub(in crate::serve) fn replace(
    text: &str,
    old: &str,
    new: &str,
    all: bool,
    max: u64,
) -> Result<Edited, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Same);
    }
    let mut offsets = text.match_indices(old).map(|(offset, _)| offset);
    let Some(first) = offsets.next() else {
        let with_crlf = old.contains('\n') && text.contains(&old.replace('\n', "\r\n"));
        return Err(if with_crlf {
            EditError::LineEnds
        } else {
            EditError::NotFound
        });
    };
    let line = line_at(text, first);
    if let Some(second) = offsets.next().filter(|_| !all) {
        return Err(EditError::Ambiguous {
            count: 2 + offsets.count(),
            line,
            next: line_at(text, second),
        });
    }
    let count = text.matches(old).count();
    let rest = text.len() - count * old.len();
    let size = (count as u64).saturating_mul(new.len() as u64);
    let size = size.saturating_add(rest as u64);
    if size > max {
        return Err(EditError::TooLarge { size, max });
    }
    Ok(Edited {
        count,
        text: text.replace(old, new),
        line,
    })
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..offset]).count()
}

impl Edited {
    /// Returns the first change with its surrounding lines, numbered and shortened to
    /// `line_bytes`.
    pub(in crate::serve) fn context(&self, new: &str, line_bytes: usize) -> String {
        let changed = new.lines().count().clamp(1, CHANGED_LINES);
        let first = self.line.saturating_sub(CONTEXT_LINES).max(1);
        let last = self.line + changed - 1 + CONTEXT_LINES;
        let lines = self.text.lines().enumerate();
        let shown = lines
            .map(|(index, line)| (index + 1, line))
            .filter(|(number, _)| (first..=last).contains(number));
        let mut context = String::new();
        for (number, line) in shown {
            let line = text::shorten(line, line_bytes);
            super::line_range::write_numbered(&mut context, number as u64, &line);
        }
        context
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNLIMITED: u64 = 1000;

    #[test]
    fn replaces_one_occurrence_with_context() {
        let text = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let edited = replace(text, "e\n", "E\nEE\n", false, UNLIMITED).unwrap();
        assert_eq!(edited.text, "a\nb\nc\nd\nE\nEE\nf\ng\nh\n");
        assert_eq!((edited.count, edited.line), (1, 5));
        assert_eq!(
            edited.context("E\nEE\n", 100),
            "     2\tb\n     3\tc\n     4\td\n     5\tE\n     6\tEE\n     7\tf\n     8\tg\n     9\th\n"
        );
    }

    #[test]
    fn rejects_ambiguous_and_missing_text() {
        let text = "one\ntwo\none\none";
        let ambiguous = EditError::Ambiguous {
            count: 3,
            line: 1,
            next: 3,
        };
        assert_eq!(replace(text, "one", "1", false, UNLIMITED), Err(ambiguous));
        assert_eq!(replace(text, "one", "1", true, UNLIMITED).unwrap().count, 3);
        assert_eq!(
            replace(text, "three", "3", true, UNLIMITED),
            Err(EditError::NotFound)
        );
        assert_eq!(
            replace(text, "", "3", false, UNLIMITED),
            Err(EditError::Empty)
        );
        assert_eq!(
            replace(text, "two", "two", false, UNLIMITED),
            Err(EditError::Same)
        );
        let crlf = "a\r\nb\r\n";
        assert_eq!(
            replace(crlf, "a\nb", "c", false, UNLIMITED),
            Err(EditError::LineEnds)
        );
    }

    #[test]
    fn rejects_an_oversized_result() {
        let text = "x-x-x";
        assert!(replace(text, "x", "yyyy", true, 14).is_ok());
        let too_large = EditError::TooLarge { size: 14, max: 13 };
        assert_eq!(replace(text, "x", "yyyy", true, 13), Err(too_large));
    }

    proptest! {
        #[test]
        fn replaces_exactly_the_old_text(
            before in "[a-c\n]{0,40}", old in "[x-z]{1,5}", new in "[0-9\n]{0,9}", after in "[a-c\n]{0,40}",
        ) {
            let text = format!("{before}{old}{after}");
            let edited = replace(&text, &old, &new, false, UNLIMITED).unwrap();
            prop_assert_eq!(edited.text, format!("{before}{new}{after}"));
            prop_assert_eq!(edited.line, 1 + before.matches('\n').count());
        }
    }
}

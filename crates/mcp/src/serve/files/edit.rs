//! An exact replacement in a text.

use crate::serve::words;

/// How much around a change is shown, in lines.
const CONTEXT: usize = 3;
/// How much of the changed part is shown, in lines.
const SHOWN: usize = 40;

/// What a replacement has made of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Edited {
    pub(in crate::serve) text: String,
    /// How many places were changed.
    pub(in crate::serve) count: usize,
    /// The line of the first one, from 1.
    pub(in crate::serve) line: usize,
}

/// Why a text was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum Unedited {
    /// Nothing to look for.
    #[error("`old_text` is empty; to make a new file, use write_file")]
    Empty,
    /// Nothing would change.
    #[error("`old_text` and `new_text` are the same")]
    Same,
    /// It isn't there.
    #[error(
        "`old_text` is not in the file; it has to be exactly what is there, with every space and \
         line break: read the place again with read_file"
    )]
    Missing,
    /// It would be there, if lines were broken in another way.
    #[error(
        "`old_text` is not in the file as it is written: lines there end with \"\\r\\n\", so \
         `old_text` and `new_text` need that too"
    )]
    OtherLineEnds,
    /// It is there more than once.
    #[error(
        "`old_text` is in the file {count} times (first on line {line}, then on line {next}); give \
         more of what is around the one you mean, or set `replace_all`"
    )]
    Ambiguous {
        /// How often.
        count: usize,
        /// The lines of the first,
        line: usize,
        /// and of the second.
        next: usize,
    },
    /// There would be too much of it.
    #[error("it would have {size} bytes then, and at most {most} can be edited")]
    TooLarge {
        /// How much there would be.
        size: u64,
        /// How much there may be.
        most: u64,
    },
}

/// Replaces what is there exactly once, or wherever it is, as long as the result
/// has at most so many bytes.
pub(in crate::serve) fn replace(
    text: &str,
    old: &str,
    new: &str,
    all: bool,
    most: u64,
) -> Result<Edited, Unedited> {
    if old.is_empty() {
        return Err(Unedited::Empty);
    }
    if old == new {
        return Err(Unedited::Same);
    }
    let mut places = text.match_indices(old).map(|(at, _)| at);
    let Some(first) = places.next() else {
        let other = old.contains('\n') && text.contains(&old.replace('\n', "\r\n"));
        return Err(match other {
            true => Unedited::OtherLineEnds,
            false => Unedited::Missing,
        });
    };
    let line = line_at(text, first);
    if let Some(second) = places.next().filter(|_| !all) {
        return Err(Unedited::Ambiguous {
            count: 2 + places.count(),
            line,
            next: line_at(text, second),
        });
    }
    let count = text.matches(old).count();
    let rest = text.len() - count * old.len();
    let size = (count as u64).saturating_mul(new.len() as u64);
    let size = size.saturating_add(rest as u64);
    if size > most {
        return Err(Unedited::TooLarge { size, most });
    }
    Ok(Edited {
        count,
        text: text.replace(old, new),
        line,
    })
}

fn line_at(text: &str, at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count()
}

impl Edited {
    /// The first change with what is around it, lines numbered, and so much of each
    /// line.
    pub(in crate::serve) fn around(&self, new: &str, line_bytes: usize) -> String {
        let changed = new.lines().count().clamp(1, SHOWN);
        let first = self.line.saturating_sub(CONTEXT).max(1);
        let last = self.line + changed - 1 + CONTEXT;
        let lines = self.text.lines().enumerate();
        let shown = lines
            .map(|(index, line)| (index + 1, line))
            .filter(|(number, _)| (first..=last).contains(number));
        let mut around = String::new();
        for (number, line) in shown {
            super::view::numbered(
                &mut around,
                number as u64,
                &words::shortened(line, line_bytes),
            );
        }
        around
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLENTY: u64 = 1000;

    #[test]
    fn one_place_is_changed_and_shown() {
        let text = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let edited = replace(text, "e\n", "E\nEE\n", false, PLENTY).unwrap();
        assert_eq!(edited.text, "a\nb\nc\nd\nE\nEE\nf\ng\nh\n");
        assert_eq!((edited.count, edited.line), (1, 5));
        assert_eq!(
            edited.around("E\nEE\n", 100),
            "     2\tb\n     3\tc\n     4\td\n     5\tE\n     6\tEE\n     7\tf\n     8\tg\n     9\th\n"
        );
    }

    #[test]
    fn what_is_meant_has_to_be_clear() {
        let text = "one\ntwo\none\none";
        let ambiguous = Unedited::Ambiguous {
            count: 3,
            line: 1,
            next: 3,
        };
        assert_eq!(replace(text, "one", "1", false, PLENTY), Err(ambiguous));
        assert_eq!(replace(text, "one", "1", true, PLENTY).unwrap().count, 3);
        assert_eq!(
            replace(text, "three", "3", true, PLENTY),
            Err(Unedited::Missing)
        );
        assert_eq!(replace(text, "", "3", false, PLENTY), Err(Unedited::Empty));
        assert_eq!(
            replace(text, "two", "two", false, PLENTY),
            Err(Unedited::Same)
        );
        let dos = "a\r\nb\r\n";
        assert_eq!(
            replace(dos, "a\nb", "c", false, PLENTY),
            Err(Unedited::OtherLineEnds)
        );
    }

    #[test]
    fn what_would_be_too_much_is_left_as_it_is() {
        let text = "x-x-x";
        assert!(replace(text, "x", "yyyy", true, 14).is_ok());
        let too_large = Unedited::TooLarge { size: 14, most: 13 };
        assert_eq!(replace(text, "x", "yyyy", true, 13), Err(too_large));
    }

    proptest! {
        #[test]
        fn what_was_replaced_can_be_put_back(
            before in "[a-c\n]{0,40}", old in "[x-z]{1,5}", new in "[0-9\n]{0,9}", after in "[a-c\n]{0,40}",
        ) {
            let text = format!("{before}{old}{after}");
            let edited = replace(&text, &old, &new, false, PLENTY).unwrap();
            prop_assert_eq!(edited.text, format!("{before}{new}{after}"));
            prop_assert_eq!(edited.line, 1 + before.matches('\n').count());
        }
    }
}

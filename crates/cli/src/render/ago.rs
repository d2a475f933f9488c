//! How long ago something was.

use std::time::Duration;

/// In seconds, with the words for one and for many.
const UNITS: [(u64, &str, &str); 4] = [
    (86_400, "day", "days"),
    (3_600, "hour", "hours"),
    (60, "min", "min"),
    (1, "s", "s"),
];

/// In the largest unit of which there is a whole one.
pub(crate) fn ago(since: Duration) -> String {
    let seconds = since.as_secs();
    let Some((unit, one, many)) = UNITS.iter().find(|(unit, ..)| seconds >= *unit) else {
        return "just now".to_owned();
    };
    let count = seconds / unit;
    let name = if count == 1 { one } else { many };
    format!("{count} {name} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words_that_fit_the_time() {
        for (seconds, words) in [
            (0, "just now"),
            (1, "1 s ago"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (3_600, "1 hour ago"),
            (7_200, "2 hours ago"),
            (86_400, "1 day ago"),
            (200_000, "2 days ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), words);
        }
    }
}

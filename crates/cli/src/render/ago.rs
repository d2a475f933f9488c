//! Formats how long ago an event was.

use std::time::Duration;

/// Seconds, singular, plural.
const UNITS: [(u64, &str, &str); 4] = [
    (86_400, "day", "days"),
    (3_600, "hour", "hours"),
    (60, "min", "min"),
    (1, "s", "s"),
];

/// Formats in the largest unit with at least one whole.
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
    fn uses_the_largest_whole_unit() {
        for (seconds, expected) in [
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
            assert_eq!(ago(Duration::from_secs(seconds)), expected);
        }
    }
}

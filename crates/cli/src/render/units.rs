//! Formats times and byte counts.

use std::time::Duration;

use bytesize::ByteSize;

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

/// Formats with one decimal, in the largest unit that fits.
pub(crate) fn byte_size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        _ => ByteSize(bytes).display().iec().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ago_uses_the_largest_whole_unit() {
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

    #[test]
    fn byte_size_uses_the_largest_unit_that_fits() {
        for (bytes, expected) in [
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_600_000, "1.5 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(byte_size(bytes), expected);
        }
    }
}

//! Sizes and times in human-readable units.

use std::time::Duration;

use bytesize::ByteSize;

/// Seconds, singular, plural.
const UNITS: [(u64, &str, &str); 4] = [
    (86_400, "day", "days"),
    (3_600, "hour", "hours"),
    (60, "min", "min"),
    (1, "s", "s"),
];

/// Formats a time in the past in the largest unit with at least one whole.
pub(crate) fn ago(since: Duration) -> String {
    match since.as_secs() {
        0 => "just now".to_owned(),
        _ => format!("{} ago", span(since)),
    }
}

/// Formats in the largest unit with at least one whole.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let found = UNITS.iter().find(|(unit, ..)| seconds >= *unit);
    let (unit, one, many) = found.unwrap_or(&UNITS[3]);
    let count = seconds / unit;
    let name = if count == 1 { one } else { many };
    format!("{count} {name}")
}

/// Formats with one decimal, in the largest unit that fits.
pub(crate) fn byte_size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        _ => ByteSize(bytes).display().iec().to_string(),
    }
}

/// Parses a number of bytes: `65536`, `64KiB`, `1MiB`.
pub(crate) fn parse_size(text: &str) -> Option<usize> {
    let size: ByteSize = text.parse().ok()?;
    size.as_u64().try_into().ok()
}

/// Formats a number of bytes exactly, in the largest unit that divides it.
pub(crate) fn format_size(bytes: usize) -> String {
    const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let mut units = UNITS.iter();
    match units.find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Parses a duration: `500ms`, `30s`, `1h30m`, or a number of seconds.
pub(crate) fn parse_time(text: &str) -> Result<Duration, &'static str> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| "expected a time such as 500ms, 30s or 1h30m")
}

/// Formats a duration exactly.
pub(crate) fn format_time(time: Duration) -> String {
    humantime::format_duration(time)
        .to_string()
        .replace(' ', "")
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

    #[test]
    fn sizes_use_human_readable_units() {
        for (text, bytes, shown) in [
            ("1MiB", 1 << 20, "1MiB"),
            ("65536", 65536, "64KiB"),
            ("1000", 1000, "1000"),
            ("3GiB", 3 << 30, "3GiB"),
            ("64 KiB", 65536, "64KiB"),
        ] {
            assert_eq!(parse_size(text), Some(bytes));
            assert_eq!(format_size(bytes), shown);
        }
        assert_eq!(parse_size("lots"), None);
    }

    #[test]
    fn times_use_human_readable_units() {
        for (text, ms, shown) in [
            ("30s", 30_000, "30s"),
            ("500ms", 500, "500ms"),
            ("1h30m", 5_400_000, "1h30m"),
            ("2", 2000, "2s"),
            ("0", 0, "0s"),
        ] {
            let time = Duration::from_millis(ms);
            assert_eq!(parse_time(text), Ok(time));
            assert_eq!(format_time(time), shown);
        }
        for wrong in ["soon", "", "-2", "1.5", "2 parsecs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}

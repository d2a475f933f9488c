//! Numbers of bytes.

/// With one digit behind the point, in the largest unit that fits.
pub(crate) fn amount(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_largest_unit_that_fits() {
        for (bytes, words) in [
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_600_000, "1.5 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(amount(bytes), words);
        }
    }
}

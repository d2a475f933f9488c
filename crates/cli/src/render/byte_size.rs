//! Formats byte counts.

use bytesize::ByteSize;

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
    fn uses_the_largest_unit_that_fits() {
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

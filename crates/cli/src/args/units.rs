//! Sizes, times and counts in human-readable units.

use std::{fmt, str::FromStr, time::Duration};

use outpost_engine::Ttl;

/// A number of bytes: `65536`, `64KiB`, `1MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<bytesize::ByteSize>()
            .ok()
            .and_then(|size| usize::try_from(size.as_u64()).ok())
            .map(Size)
            .ok_or("expected a size such as 65536, 64KiB or 1MiB")
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS
            .iter()
            .find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit))
        {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A duration: `500ms`, `30s`, `1h30m`, or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(seconds) = text.parse() {
            return Ok(Span(Duration::from_secs(seconds)));
        }
        humantime::parse_duration(text)
            .map(Span)
            .map_err(|_| "expected a time such as 500ms, 30s or 1h30m")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = humantime::format_duration(self.0).to_string();
        f.write_str(&text.replace(' ', ""))
    }
}

/// A session TTL: a time or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaxTtl(pub(crate) Ttl);

impl FromStr for MaxTtl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unlimited" {
            return Ok(MaxTtl(Ttl::Unlimited));
        }
        text.parse::<Span>()
            .map(|span| MaxTtl(Ttl::For(span.0)))
            .map_err(|_| "expected a time such as 30s or 1h30m, or `unlimited`")
    }
}

impl fmt::Display for MaxTtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ttl::For(span) => Span(span).fmt(f),
            Ttl::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// An idle timeout: a time or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdleTimeout(pub(crate) Option<Duration>);

impl FromStr for IdleTimeout {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(IdleTimeout(None));
        }
        text.parse::<Span>()
            .map(|span| IdleTimeout(Some(span.0)))
            .map_err(|_| "expected a time such as 30s or 1h30m, or `never`")
    }
}

impl fmt::Display for IdleTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => Span(span).fmt(f),
            None => f.write_str("never"),
        }
    }
}

/// A count of at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

impl FromStr for Count {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Count(text.parse::<std::num::NonZeroUsize>()?.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_human_readable_units() {
        for (text, bytes, shown) in [
            ("1MiB", 1 << 20, "1MiB"),
            ("65536", 65536, "64KiB"),
            ("1000", 1000, "1000"),
            ("3GiB", 3 << 30, "3GiB"),
            ("64 KiB", 65536, "64KiB"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, shown));
        }
        assert!("lots".parse::<Size>().is_err());
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
            let span: Span = text.parse().unwrap();
            assert_eq!(
                (span.0, span.to_string().as_str()),
                (Duration::from_millis(ms), shown)
            );
        }
        for wrong in ["soon", "", "-2", "1.5", "2 parsecs"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
        assert!("2".parse::<MaxTtl>().is_ok());
        assert!("2".parse::<IdleTimeout>().is_ok());
    }
}

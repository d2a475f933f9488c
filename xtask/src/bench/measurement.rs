//! Measured values with their units and bounds.

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Milliseconds.
    Millis,
    /// Operations per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
}

impl Unit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Millis if value == 0.0 => "0 ms".to_owned(),
            Self::Millis if value < 1.0 => format!("{:.0} µs", value * 1e3),
            Self::Millis if value < 10.0 => format!("{} ms", short(value, 2)),
            Self::Millis => format!("{} ms", short(value, 1)),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::BytesPerSecond => format!("{:.0} MiB/s", value / MIB),
            Self::Bytes if value < MIB => format!("{} KiB", short(value / KIB, 1)),
            Self::Bytes => format!("{} MiB", short(value / MIB, 1)),
        }
    }
}

pub(super) const KIB: f64 = 1024.0;
pub(super) const MIB: f64 = 1024.0 * KIB;

/// Formats with `digits` decimals, unless they are all zero.
fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    text.strip_suffix(&format!(".{}", "0".repeat(digits)))
        .map(str::to_owned)
        .unwrap_or(text)
}

/// A bound on one measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// Maximum ratio to the bare system.
    RatioAtMost(f64),
    /// Minimum ratio to the bare system.
    RatioAtLeast(f64),
    /// Maximum difference to the bare system.
    AboveAtMost(f64),
    /// Maximum value.
    AtMost(f64),
    /// At most `times` the `first` value, measured with `at` processes.
    Flat { times: f64, first: f64, at: usize },
}

impl Bound {
    /// Returns true if the bound is met. Without a bare value, a relative bound is not met.
    pub(super) fn is_met(self, value: f64, bare: Option<f64>) -> bool {
        let ratio = bare.map(|bare| value / bare);
        match self {
            Self::RatioAtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Self::RatioAtLeast(least) => ratio.is_some_and(|ratio| ratio >= least),
            Self::AboveAtMost(most) => bare.is_some_and(|bare| value - bare <= most),
            Self::AtMost(most) => value <= most,
            Self::Flat { times, first, .. } => value <= times * first,
        }
    }

    pub(super) fn show(self, unit: Unit) -> String {
        match self {
            Self::RatioAtMost(most) => format!("≤ {most} ×"),
            Self::RatioAtLeast(least) => format!("≥ {least} ×"),
            Self::AboveAtMost(most) => format!("≤ +{}", unit.show(most)),
            Self::AtMost(most) => format!("≤ {}", unit.show(most)),
            Self::Flat { times, at, .. } => format!("≤ {times} × at {at}"),
        }
    }
}

/// A value of all sides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) name: String,
    pub(super) unit: Unit,
    /// None if the bare system has no equivalent.
    pub(super) bare: Option<f64>,
    pub(super) outpost: f64,
    /// None without a peer, or if it failed.
    pub(super) peer: Option<f64>,
    /// All bounds must be met.
    pub(super) bounds: Vec<Bound>,
}

impl Measurement {
    /// The ratio to the bare system.
    pub(super) fn ratio(&self) -> Option<f64> {
        Some(self.outpost / self.bare?)
    }

    pub(super) fn peer_ratio(&self) -> Option<f64> {
        Some(self.peer? / self.bare?)
    }

    pub(super) fn missed(&self) -> bool {
        let met = |bound: &Bound| bound.is_met(self.outpost, self.bare);
        !self.bounds.iter().all(met)
    }

    pub(super) fn show_bounds(&self) -> String {
        let shown = self.bounds.iter().map(|bound| bound.show(self.unit));
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_compared() {
        let bare = Some(2.0);
        assert!(Bound::RatioAtMost(1.5).is_met(3.0, bare));
        assert!(!Bound::RatioAtMost(1.5).is_met(3.1, bare));
        assert!(Bound::RatioAtLeast(0.5).is_met(1.0, bare));
        assert!(!Bound::RatioAtLeast(0.5).is_met(0.9, bare));
        assert!(Bound::AboveAtMost(0.4).is_met(2.3, bare));
        assert!(!Bound::AboveAtMost(0.4).is_met(2.5, bare));
        assert!(Bound::AtMost(20.0).is_met(20.0, None));
        assert!(!Bound::AtMost(20.0).is_met(20.1, None));
        let flat = Bound::Flat {
            times: 1.5,
            first: 2.0,
            at: 10,
        };
        assert!(flat.is_met(3.0, None));
        assert!(!flat.is_met(3.1, None));
    }

    #[test]
    fn relative_bound_needs_a_bare_value() {
        assert!(!Bound::RatioAtMost(1.5).is_met(0.0, None));
        assert!(!Bound::AboveAtMost(1.5).is_met(0.0, None));
    }

    #[test]
    fn numbers_use_largest_fitting_unit() {
        assert_eq!(Unit::Millis.show(0.0), "0 ms");
        assert_eq!(Unit::Millis.show(0.0421), "42 µs");
        assert_eq!(Unit::Millis.show(1.256), "1.26 ms");
        assert_eq!(Unit::Millis.show(2.0), "2 ms");
        assert_eq!(Unit::Millis.show(20.0), "20 ms");
        assert_eq!(Unit::PerSecond.show(1234.4), "1234 /s");
        assert_eq!(Unit::BytesPerSecond.show(1536.0 * MIB), "1536 MiB/s");
        assert_eq!(Unit::Bytes.show(16.0 * KIB), "16 KiB");
        assert_eq!(Unit::Bytes.show(7.25 * MIB), "7.2 MiB");
    }

    #[test]
    fn all_bounds_of_a_line_count() {
        let mut line = Measurement {
            name: "one".to_owned(),
            unit: Unit::Millis,
            bare: Some(1.0),
            outpost: 1.25,
            peer: Some(3.0),
            bounds: vec![Bound::RatioAtMost(1.3), Bound::AboveAtMost(0.4)],
        };
        assert!(!line.missed());
        assert_eq!(line.peer_ratio(), Some(3.0));
        assert_eq!(line.show_bounds(), "≤ 1.3 ×, ≤ +400 µs");
        (line.bare, line.outpost) = (Some(2.0), 2.5);
        assert!(line.missed());
    }
}

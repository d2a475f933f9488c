//! Bounds on measurements.

use super::measurement::Unit;

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
}

//! What a line must reach.

use super::line::Unit;

/// A bound on what was measured. The promise is in the table of the design; a row repeats its part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// At most so many times what the bare system takes.
    RatioAtMost(f64),
    /// At least so many times what the bare system achieves.
    RatioAtLeast(f64),
    /// At most so much more than the bare system takes.
    AboveAtMost(f64),
    /// At most so much, whatever the bare system does.
    AtMost(f64),
    /// At most `times` the `first` value, which was measured `at` fewer processes.
    Flat { times: f64, first: f64, at: usize },
}

impl Bound {
    /// Whether it holds; what can't be compared doesn't.
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
    fn each_bound_looks_at_what_it_is_about() {
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
    fn without_the_bare_system_nothing_is_promised_about_it() {
        assert!(!Bound::RatioAtMost(1.5).is_met(0.0, None));
        assert!(!Bound::AboveAtMost(1.5).is_met(0.0, None));
    }
}

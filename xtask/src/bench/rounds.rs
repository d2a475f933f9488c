//! Runs the sides of a row in turns and computes their medians.

use std::time::Duration;

use anyhow::{Context, Result};

use super::measurement::{Bound, Measurement, Unit};
use super::run::Bench;
use super::server::Candidate;

/// One side of a row; each call is a round and returns one value per measurement of the row.
pub(super) type Side<'a, const N: usize> = Box<dyn FnMut() -> Result<[f64; N]> + 'a>;

/// The sides, in the order of their first turn.
const SIDES: [&str; 3] = ["the bare system", "outpost", "the peer"];
const PEER: usize = 2;

/// The medians of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Medians<const N: usize> {
    pub(super) bare: Option<[f64; N]>,
    pub(super) outpost: [f64; N],
    pub(super) peer: Option<[f64; N]>,
}

impl<const N: usize> Medians<N> {
    /// Makes measurements of the values, in order: name, unit and bounds of each.
    pub(super) fn lines<T: Into<String>>(
        &self,
        lines: [(T, Unit, Vec<Bound>); N],
    ) -> Vec<Measurement> {
        let line = |(at, (name, unit, bounds)): (usize, (T, Unit, Vec<Bound>))| Measurement {
            name: name.into(),
            unit,
            bare: self.bare.map(|bare| bare[at]),
            outpost: self.outpost[at],
            peer: self.peer.map(|peer| peer[at]),
            bounds,
        };
        lines.into_iter().enumerate().map(line).collect()
    }
}

/// Compares the bare system, if it has an equivalent, with Outpost and the peer. `open` creates the
/// state of a candidate, `served` measures one round.
pub(super) fn compare<'a, S: 'a, const N: usize>(
    bench: &'a Bench,
    rounds: usize,
    bare: Option<Side<'a, N>>,
    open: impl Fn(Candidate<'a>) -> Result<S>,
    served: impl Fn(&mut S) -> Result<[f64; N]> + Copy + 'a,
) -> Result<Medians<N>> {
    let side = |candidate| -> Result<Side<'a, N>> {
        let mut state = open(candidate)?;
        Ok(Box::new(move || served(&mut state)))
    };
    let outpost = side(bench.outpost()).context(SIDES[1])?;
    let peer = bench.peer.as_deref().map(Candidate::Peer).map(side);
    let peer = peer.and_then(|peer| peer.inspect_err(|error| leave_out(bench, error)).ok());
    alternate(bench, rounds, [bare, Some(outpost), peer])
}

/// Runs `rounds` rounds. The first round is a warm-up and does not count. A failing peer is dropped.
pub(super) fn alternate<const N: usize>(
    bench: &Bench,
    rounds: usize,
    mut sides: [Option<Side<'_, N>>; 3],
) -> Result<Medians<N>> {
    let mut measured = SIDES.map(|_| Vec::new());
    for round in 0..=rounds {
        bench.step(&format!("{round}/{rounds}"));
        // Rotate the order, so that no side always comes first.
        for turn in 0..SIDES.len() {
            let at = (round + turn) % SIDES.len();
            let Some(side) = &mut sides[at] else {
                continue;
            };
            match side() {
                Ok(values) => measured[at].push(values),
                Err(error) if at == PEER => {
                    leave_out(bench, &error);
                    sides[at] = None;
                }
                Err(error) => return Err(error.context(SIDES[at])),
            }
        }
    }
    let side = |at: usize| sides[at].as_ref().map(|_| medians(&measured[at][1..]));
    Ok(Medians {
        bare: side(0),
        outpost: side(1).context("Outpost was not measured")?,
        peer: side(PEER),
    })
}

fn leave_out(bench: &Bench, error: &anyhow::Error) {
    bench.note(&format!("peer left out: {error:#}"));
}

/// Computes the median of each value over all rounds.
fn medians<const N: usize>(rounds: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|line| {
        let values: Vec<f64> = rounds.iter().map(|round| round[line]).collect();
        median(&values)
    })
}

/// The median; the lower of the two middle values. Zero if empty.
pub(super) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The smallest value that at least `percent` of the values don't exceed. Zero if empty.
pub(super) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Converts to milliseconds, the unit of all times.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Operations per second.
pub(super) fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_independent_of_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn percentile_matches_definition() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&values, 100), 200.0);
        assert_eq!(percentile(&values, 0), 1.0);
        assert_eq!(percentile(&values[..10], 99), 10.0);
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate(50, Duration::from_millis(500)), 100.0);
        assert_eq!(millis(Duration::from_micros(1500)), 1.5);
    }

    #[test]
    fn each_number_has_its_own_median() {
        let rounds = [[3.0, 10.0], [1.0, 30.0], [2.0, 20.0]];
        assert_eq!(medians(&rounds), [2.0, 20.0]);
    }
}

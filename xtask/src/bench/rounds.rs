//! Runs the sides of a row in turns.

use anyhow::{Context, Result};

use super::run::Bench;
use super::server::Candidate;
use super::stats::median;

/// One round of the bare system: returns one value per measurement of the row.
pub(super) type Bare<'a, const N: usize> = &'a mut dyn FnMut() -> Result<[f64; N]>;

/// The medians of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Medians<const N: usize> {
    pub(super) bare: Option<[f64; N]>,
    pub(super) outpost: [f64; N],
    pub(super) peer: Option<[f64; N]>,
}

/// A server side with the state that a row needs.
struct MeasuredServer<S, const N: usize> {
    state: S,
    rounds: Vec<[f64; N]>,
}

/// Runs `rounds` rounds. `open` creates the state of a candidate, `served` measures one round. The
/// first round is a warm-up and does not count.
///
/// A failing peer is dropped.
pub(super) fn compare<'a, S, const N: usize>(
    bench: &'a Bench,
    rounds: usize,
    mut bare: Option<Bare<'_, N>>,
    open: impl Fn(Candidate<'a>) -> Result<S>,
    served: impl Fn(&mut S) -> Result<[f64; N]>,
) -> Result<Medians<N>> {
    let begin = |candidate| {
        open(candidate).map(|state| MeasuredServer {
            state,
            rounds: Vec::new(),
        })
    };
    let mut outpost = begin(bench.candidates.outpost()).context("outpost")?;
    let peer = bench.candidates.peer();
    let mut peer = peer.and_then(|peer| or_log(bench, begin(peer)));
    let mut bare_rounds = Vec::new();

    for round in 0..=rounds {
        bench.progress.step(&format!("{round}/{rounds}"));
        // Rotate the order, so that no side always comes first.
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => {
                    if let Some(bare) = &mut bare {
                        bare_rounds.push(bare().context("the bare system")?);
                    }
                }
                1 => {
                    let measured = served(&mut outpost.state).context("outpost")?;
                    outpost.rounds.push(measured);
                }
                _ => {
                    if let Some(mut side) = peer.take() {
                        let measured = or_log(bench, served(&mut side.state));
                        peer = measured.map(|measured| {
                            side.rounds.push(measured);
                            side
                        });
                    }
                }
            }
        }
    }
    Ok(Medians {
        bare: bare.map(|_| medians(&bare_rounds[1..])),
        outpost: medians(&outpost.rounds[1..]),
        peer: peer.map(|peer| medians(&peer.rounds[1..])),
    })
}

fn or_log<T>(bench: &Bench, outcome: Result<T>) -> Option<T> {
    outcome
        .inspect_err(|error| bench.progress.note(&format!("peer left out: {error:#}")))
        .ok()
}

/// Computes the median of each value over all rounds.
fn medians<const N: usize>(rounds: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|line| {
        let values: Vec<f64> = rounds.iter().map(|round| round[line]).collect();
        median(&values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_median() {
        let rounds = [[3.0, 10.0], [1.0, 30.0], [2.0, 20.0]];
        assert_eq!(medians(&rounds), [2.0, 20.0]);
    }
}

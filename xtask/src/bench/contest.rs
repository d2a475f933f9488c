//! Lets the sides of a row take turns.

use anyhow::{Context, Result};

use super::run::Bench;
use super::server::Candidate;
use super::stats::median;

/// What the bare system does in one round, and what it measured: as many numbers as the row has
/// lines.
pub(super) type Bare<'a, const N: usize> = &'a mut dyn FnMut() -> Result<[f64; N]>;

/// The medians of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Medians<const N: usize> {
    pub(super) bare: Option<[f64; N]>,
    pub(super) outpost: [f64; N],
    pub(super) peer: Option<[f64; N]>,
}

/// A side that is a server, with whatever a row needs of it.
struct Side<S, const N: usize> {
    state: S,
    rounds: Vec<[f64; N]>,
}

/// Runs so many rounds. `open` makes of a candidate what `served` needs in every round. The first
/// round isn't counted: it is the one that loads programs and grows buffers.
///
/// A peer that fails is left out from there on; the row is about us.
pub(super) fn compare<'a, S, const N: usize>(
    bench: &'a Bench,
    rounds: usize,
    mut bare: Option<Bare<'_, N>>,
    open: impl Fn(Candidate<'a>) -> Result<S>,
    served: impl Fn(&mut S) -> Result<[f64; N]>,
) -> Result<Medians<N>> {
    let begin = |candidate| {
        open(candidate).map(|state| Side {
            state,
            rounds: Vec::new(),
        })
    };
    let mut outpost = begin(bench.candidates.outpost()).context("outpost")?;
    let peer = bench.candidates.peer();
    let mut peer = peer.and_then(|peer| or_note(bench, begin(peer)));
    let mut bare_rounds = Vec::new();

    for round in 0..=rounds {
        bench.progress.step(&format!("{round}/{rounds}"));
        // Each comes first as often as the others, in case coming first is an advantage.
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
                        let measured = or_note(bench, served(&mut side.state));
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

fn or_note<T>(bench: &Bench, outcome: Result<T>) -> Option<T> {
    outcome
        .inspect_err(|error| bench.progress.note(&format!("peer left out: {error:#}")))
        .ok()
}

/// The median of each number over all rounds.
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

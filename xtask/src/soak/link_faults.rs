//! Random faults of a link.

use std::sync::Arc;
use std::time::Duration;

use outpost_testkit::{Direction, FaultyLink};

use super::counters::{Counters, add};
use super::rng::Rng;

/// Cuts, stalls, half-closes and throttles a link until aborted.
pub(super) async fn inject(link: Arc<FaultyLink>, mut rng: Rng, counters: Arc<Counters>) {
    let directions = [Direction::ToServer, Direction::ToClient];
    loop {
        wait(rng.between(20, 500)).await;
        let direction = rng.one_of(&directions);
        match rng.between(0, 9) {
            0..=5 => {
                link.cut().await;
                add(&counters.cuts, 1);
                continue;
            }
            6 | 7 => link.stall(direction),
            8 => link.throttle(direction, 500_000),
            _ => link.half_close(direction),
        }
        add(&counters.other_faults, 1);
        wait(rng.between(10, 400)).await;
        link.open();
        // A half-closed connection stays half-closed.
        if rng.between(0, 1) == 0 {
            link.cut().await;
            add(&counters.cuts, 1);
        }
    }
}

async fn wait(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

//! What happens to a link.

use std::sync::Arc;
use std::time::Duration;

use outpost_testkit::{Direction, Link};

use super::dice::Dice;
use super::figures::{Figures, add};

/// Cuts, stalls, halves and slows a link, for ever.
pub(super) async fn make(link: Arc<Link>, mut dice: Dice, figures: Arc<Figures>) {
    let ways = [Direction::ToServer, Direction::ToClient];
    loop {
        wait(dice.between(20, 500)).await;
        let way = dice.one_of(&ways);
        match dice.between(0, 9) {
            0..=5 => {
                link.cut().await;
                add(&figures.cuts, 1);
                continue;
            }
            6 | 7 => link.stall(way),
            8 => link.throttle(way, 500_000),
            _ => link.half_close(way),
        }
        add(&figures.other_troubles, 1);
        wait(dice.between(10, 400)).await;
        link.open();
        // What was half-closed stays so.
        if dice.between(0, 1) == 0 {
            link.cut().await;
            add(&figures.cuts, 1);
        }
    }
}

async fn wait(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

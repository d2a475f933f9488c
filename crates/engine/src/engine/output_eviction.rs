//! Evicts the history of processes when memory is scarce, starting with the peers that use the most
//! memory.

use std::time::Duration;

use super::Engine;
use crate::{Process, kept_output::history_limit};

/// The shortest time between two cuts of history.
const TRIM_INTERVAL: Duration = Duration::from_millis(50);

impl Engine {
    /// Evicts the largest histories of the peers that use the most memory, when memory is scarce, until
    /// the engine shuts down.
    pub(super) async fn trim_history(self) {
        loop {
            tokio::select! {
                () = self.shared.output_budget.wait_scarce() => {}
                () = self.shared.ending.cancelled() => return,
            }
            let processes: Vec<_> = self.shared.alive.lock().values().cloned().collect();
            for (peer, excess) in self.shared.output_budget.excess() {
                let processes = processes.iter().filter(|process| process.peer() == peer);
                let history: Vec<_> = processes.clone().map(Process::history).collect();
                let limit = history_limit(excess, &history);
                for (process, history) in processes.zip(history) {
                    if history > limit {
                        process.trim_history(limit);
                    }
                }
            }
            // Memory may stay scarce because owners do not read.
            let _ = tokio::time::timeout(TRIM_INTERVAL, self.shared.ending.cancelled()).await;
        }
    }
}

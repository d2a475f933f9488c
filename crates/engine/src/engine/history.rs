//! Cuts the history of processes when memory is scarce.

use std::time::Duration;

use super::Engine;
use crate::Process;

/// The shortest time between two cuts of history.
const TRIM_INTERVAL: Duration = Duration::from_millis(50);

impl Engine {
    /// Cuts the history of the processes that keep most when memory is scarce, until the engine
    /// shuts down.
    pub(super) async fn trim_history(self) {
        loop {
            tokio::select! {
                () = self.shared.output_budget.wait_scarce() => {}
                () = self.shared.ending.cancelled() => return,
            }
            let processes: Vec<_> = self.shared.alive.lock().values().cloned().collect();
            let history: Vec<_> = processes.iter().map(Process::history).collect();
            let limit = self.shared.output_budget.history_limit(&history);
            for (process, history) in processes.iter().zip(history) {
                if history > limit {
                    process.trim_history(limit);
                }
            }
            // Memory may stay scarce because owners do not read.
            let _ = tokio::time::timeout(TRIM_INTERVAL, self.shared.ending.cancelled()).await;
        }
    }
}

//! The engine's clock, which stands still while the server does not run.

use std::time::{Duration, Instant};

use super::Engine;
use crate::{clock, suspension_meter::TICK};

impl Engine {
    /// Measures the time that the server does not run, until the engine shuts down. Without it, all time
    /// counts.
    pub async fn measure_stops(&self) {
        loop {
            self.shared.stops.lock().tick(clock::now());
            tokio::select! {
                () = self.shared.ending.cancelled() => return,
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// The time by which leases and retention are measured. It does not count while the server is stopped.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.stops.lock().running_time(clock::now())
    }

    /// Whether the server was stopped and has run again for less than `span`.
    #[must_use]
    pub fn was_stopped_within(&self, span: Duration) -> bool {
        let mut stops = self.shared.stops.lock();
        stops.was_stopped_within(span, clock::now())
    }

    /// Sleeps for a time in which the server runs.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(Some(clock::after(self.now(), span))).await;
    }

    /// Sleeps until a time of [`Engine::now`], or forever without one.
    pub(super) async fn sleep_until(&self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return std::future::pending().await;
        };
        loop {
            let left = deadline.saturating_duration_since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

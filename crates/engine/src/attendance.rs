//! Who is there, and since when nobody is.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// Counts those who are there; clones count the same.
#[derive(Clone, Debug)]
pub struct Attendance {
    count: Arc<watch::Sender<usize>>,
}

/// Somebody who is there until this is dropped.
#[derive(Debug)]
pub struct Presence {
    attendance: Attendance,
}

impl Attendance {
    pub(crate) fn new() -> Self {
        Attendance {
            count: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Comes in.
    #[must_use]
    pub fn enter(&self) -> Presence {
        self.count.send_modify(|count| *count += 1);
        Presence {
            attendance: self.clone(),
        }
    }

    /// Waits until nobody has been there for so long.
    pub async fn deserted_for(&self, span: Duration) {
        let mut count = self.count.subscribe();
        loop {
            // The sender is ours, so there is always somebody to hear from.
            let _ = count.wait_for(|count| *count == 0).await;
            tokio::select! {
                () = tokio::time::sleep(span) => return,
                _ = count.changed() => {}
            }
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.attendance.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const SPAN: Duration = Duration::from_secs(60);

    /// How long it takes until nobody has been there for a minute.
    async fn deserted(attendance: &Attendance) -> Duration {
        let since = Instant::now();
        attendance.deserted_for(SPAN).await;
        since.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn it_takes_as_long_as_it_was_told_to_when_nobody_ever_comes() {
        assert_eq!(deserted(&Attendance::new()).await, SPAN);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_begins_when_the_last_one_goes() {
        let attendance = Attendance::new();
        let (short, long) = (attendance.enter(), attendance.enter());
        tokio::spawn(async move {
            // sleep: time is paused here
            sleep(SPAN).await;
            drop(short);
            // sleep: time is paused here
            sleep(SPAN).await;
            drop(long);
        });
        assert_eq!(deserted(&attendance).await, 3 * SPAN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_visit_however_short_begins_it_again() {
        let attendance = Attendance::new();
        let visited = attendance.clone();
        tokio::spawn(async move {
            // sleep: time is paused here
            sleep(SPAN / 2).await;
            drop(visited.enter());
        });
        assert_eq!(deserted(&attendance).await, SPAN / 2 + SPAN);
    }
}

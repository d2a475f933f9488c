//! A call under way, as the tool that performs it sees it.

use std::{convert::Infallible, future::Future, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::Mishap;

/// Who waits for the answer.
pub(super) struct Call {
    /// The client has called it off.
    pub(super) off: CancellationToken,
    /// The conversation is over.
    pub(super) over: CancellationToken,
    /// Where to tell how far it has come, if anybody wants to know.
    pub(super) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    pub(super) every: Duration,
}

impl Call {
    /// Waits for something as long as somebody waits for the answer, and tells
    /// about it meanwhile: how long it takes, of how long it may, and what there
    /// is to say.
    pub(super) async fn wait<T>(
        &self,
        of: Duration,
        say: impl Fn() -> String,
        work: impl Future<Output = T>,
    ) -> Result<T, Mishap> {
        tokio::select! {
            done = work => Ok(done),
            () = self.off.cancelled() => Err(Mishap::Cancelled),
            () = self.over.cancelled() => Err(Mishap::Leaving),
            never = self.telling(of, say) => match never {},
        }
    }

    async fn telling(&self, of: Duration, say: impl Fn() -> String) -> Infallible {
        let began = Instant::now();
        let mut ticks = interval_at(began + self.every, self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.tell(began.elapsed(), of, &say).await;
        }
    }

    async fn tell(&self, done: Duration, of: Duration, say: &impl Fn() -> String) {
        let Some((peer, token)) = &self.progress else {
            return;
        };
        let note = ProgressNotificationParam::new(token.clone(), done.as_secs_f64())
            .with_total(of.as_secs_f64())
            .with_message(say());
        // Who is gone needn't know; the end of the conversation says so soon.
        let _ = peer.notify_progress(note).await;
    }
}

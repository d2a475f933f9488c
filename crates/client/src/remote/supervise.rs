//! The task that brings a lost connection back.

use std::{sync::Arc, time::Instant};

use outpost_protocol::{Method, TerminateResult, code};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout, timeout_at},
};

use super::{
    Standing,
    core::{Core, lock, terminate},
    handshake::{Session, trouble},
    hearing::{BUSY_PAUSE, now, read_after},
    line::{CallError, Line},
    listen::attend,
    recovery::{Loss, Recovery, Step, Trouble},
    tracked::Tracked,
};
use crate::Error;

/// How many processes are caught up with at the same time.
const READS_AT_ONCE: usize = 16;

impl Core {
    /// Looks after the connection until it is lost for good, or nobody wants it
    /// any more.
    pub(super) async fn supervise(self: Arc<Self>, line: Arc<Line>) {
        let ending = self.ending.clone();
        tokio::select! {
            () = self.keep_connected(line) => {}
            () = ending.cancelled() => self.fail(&"the place was closed".into()),
        }
    }

    async fn keep_connected(self: &Arc<Self>, mut line: Arc<Line>) {
        let resumable = self.dialer.redials() && self.session_id().is_some();
        let within = self.options.limits.recover_within;
        let mut recovery = Recovery::connected(line.number, within, resumable);
        loop {
            let loss: Loss = line.lost().await;
            let step = recovery.lost(line.number, &loss, now());
            if let Step::Dial { .. } = step {
                tracing::debug!(reason = loss.reason, "connection lost");
                self.standing.send_replace(Standing::Recovering);
            }
            match self.recover(&mut recovery, step).await {
                Ok(new) => line = new,
                Err(reason) => return self.fail(&reason),
            }
        }
    }

    /// Does what the recovery says, until there is a connection or no hope.
    async fn recover(
        self: &Arc<Self>,
        recovery: &mut Recovery,
        mut step: Step,
    ) -> Result<Arc<Line>, Arc<str>> {
        let mut candidate: Option<Arc<Line>> = None;
        loop {
            step = match step {
                Step::Fail { reason } => {
                    if let Some(line) = candidate {
                        line.gone.cancel();
                    }
                    return Err(reason);
                }
                Step::Dial { at } => {
                    if let Some(line) = candidate.take() {
                        line.gone.cancel();
                    }
                    sleep_until(at.into()).await;
                    match self.within(recovery, self.dial()).await {
                        Ok(line) => {
                            candidate = Some(line);
                            Step::Resume { at: now() }
                        }
                        Err(trouble) => recovery.failed(&trouble, now()),
                    }
                }
                Step::Resume { at } => match candidate.clone() {
                    None => Step::Dial { at },
                    Some(line) => {
                        sleep_until(at.into()).await;
                        match self.within(recovery, self.resume(&line)).await {
                            Ok(()) => recovery.resumed(now()),
                            Err(trouble) => recovery.failed(&trouble, now()),
                        }
                    }
                },
                Step::CatchUp => match candidate.clone() {
                    None => Step::Dial { at: now() },
                    Some(line) => {
                        let deadline = recovery.deadline().unwrap_or_else(now);
                        match timeout_at(deadline.into(), self.catch_up(&line)).await {
                            Ok(Ok(())) => recovery.caught_up(line.number, now()),
                            Ok(Err(reason)) => {
                                let for_good = false;
                                let trouble = Trouble::Unreachable { reason, for_good };
                                recovery.failed(&trouble, now())
                            }
                            Err(_) => recovery.timed_out(),
                        }
                    }
                },
                Step::GoOn | Step::Nothing => match candidate {
                    Some(line) => {
                        self.standing.send_replace(Standing::Connected);
                        self.settle_late(&line);
                        return Ok(line);
                    }
                    None => Step::Dial { at: now() },
                },
            };
        }
    }

    /// Gives a try its time, and no more than is left.
    async fn within<T>(
        &self,
        recovery: &Recovery,
        attempt: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let left = recovery
            .deadline()
            .map_or_else(Default::default, |deadline: Instant| {
                deadline.saturating_duration_since(now())
            });
        let within = left.min(self.options.limits.attempt_within);
        match timeout(within, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Trouble::Unreachable {
                reason: format!("no answer within {within:?}"),
                for_good: false,
            }),
        }
    }

    /// A new connection, with its reader running: a busy process must not clog
    /// it before the session is resumed.
    async fn dial(self: &Arc<Self>) -> Result<Arc<Line>, Trouble> {
        let transport = self.dialer.dial().await;
        let transport = transport.map_err(|error| Trouble::Unreachable {
            for_good: error.is_permanent(),
            reason: error.to_string(),
        })?;
        let line = self.next_line();
        attend(self, &line, transport);
        Ok(line)
    }

    async fn resume(&self, line: &Line) -> Result<(), Trouble> {
        let Some(id) = self.session_id() else {
            return Err(Trouble::Refused {
                reason: "there is no session to resume".to_owned(),
            });
        };
        // What closes from here on is not in the request, and is acknowledged later.
        let from = self.resume_from();
        let session = Session::Resume {
            id,
            takeover: false,
            from: from.clone(),
        };
        self.shake_hands(line, session).await.map_err(trouble)?;
        lock(&self.acks).resumed(&from);
        // What is left may be due earlier than the task that acknowledges knows.
        self.acks_owed.notify_one();
        Ok(())
    }

    /// Ends what nobody wants, then reads what was missed of everything else.
    /// Fails only if the connection does.
    async fn catch_up(self: &Arc<Self>, line: &Arc<Line>) -> Result<(), String> {
        self.settle(line).await?;
        if self.is_acked() {
            // Everything comes by itself, from where we said.
            return Ok(());
        }
        let mut reads = JoinSet::new();
        for tracked in self.alive() {
            if reads.len() >= READS_AT_ONCE
                && let Some(Ok(outcome)) = reads.join_next().await
            {
                outcome?;
            }
            let (core, line) = (Arc::clone(self), Arc::clone(line));
            reads.spawn(async move { core.catch_up_with(&line, &tracked).await });
        }
        while let Some(read) = reads.join_next().await {
            if let Ok(outcome) = read {
                outcome?;
            }
        }
        // Some may have turned out to be lost.
        self.settle(line).await
    }

    async fn catch_up_with(
        self: &Arc<Self>,
        line: &Line,
        tracked: &Arc<Tracked>,
    ) -> Result<(), String> {
        loop {
            let params = read_after(tracked.id(), tracked.last());
            match line.call(Method::ProcessRead, &params).await {
                Err(CallError::Lost(reason)) => return Err(reason),
                // Whoever comes back does so with others.
                Err(CallError::Refused(refusal)) if refusal.code == code::OVERLOADED => {
                    sleep(BUSY_PAUSE).await;
                }
                page => {
                    self.read(tracked, page.map_err(Error::from));
                    return Ok(());
                }
            }
        }
    }

    /// Tells the server to end what was dropped after the others were settled and
    /// before anybody could see that there is a connection.
    fn settle_late(&self, line: &Line) {
        let unsettled = self.strays().unsettled();
        for id in unsettled {
            line.settle(Method::ProcessTerminate, &terminate(&id), &id);
        }
    }

    /// Tells the server to end what nobody wants.
    async fn settle(&self, line: &Line) -> Result<(), String> {
        let unsettled = self.strays().unsettled();
        for id in unsettled {
            let params = terminate(&id);
            let ended: Result<TerminateResult, _> =
                line.call(Method::ProcessTerminate, &params).await;
            if let Err(CallError::Lost(reason)) = ended {
                return Err(reason);
            }
            self.strays().settled(&id);
        }
        Ok(())
    }
}

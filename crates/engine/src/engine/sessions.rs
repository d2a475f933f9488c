//! Sessions come and go.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep_until;
use tokio_util::task::TaskTracker;

use super::Engine;
use crate::{
    Attendance, Delivery, Epoch, Link, Process, ResumeRefusal, Session, SessionId, SessionOptions,
    Ttl, clock, session::Detached,
};

/// How a session is resumed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume {
    /// Although another connection has it.
    pub takeover: bool,
    /// With another delivery than before.
    pub delivery: Option<Delivery>,
    /// With another lease than before.
    pub ttl: Option<Ttl>,
}

impl Engine {
    /// A new session, attached to the caller; none if there are too many.
    #[must_use]
    pub fn open_session(
        &self,
        options: SessionOptions,
        link: Arc<dyn Link>,
    ) -> Option<(Session, Epoch)> {
        let mut sessions = self.sessions();
        if sessions.len() >= self.shared.limits.max_sessions || self.shared.ending.is_cancelled() {
            return None;
        }
        let (session, epoch) = Session::new(options, link, self.belonging());
        sessions.insert(session.id().clone(), session.clone());
        Some((session, epoch))
    }

    /// A session for one connection alone: nobody else learns of it, and it
    /// ends by [`Engine::end_private_session`] when the connection does. None
    /// if the engine is ending.
    #[must_use]
    pub fn open_private_session(&self) -> Option<(Session, Epoch)> {
        let mut private = self.private_sessions();
        if self.shared.ending.is_cancelled() {
            return None;
        }
        let (session, epoch) = Session::private(self.belonging());
        private.insert(session.id().clone(), session.clone());
        Some((session, epoch))
    }

    /// What a session has from its engine.
    fn belonging(&self) -> (Attendance, TaskTracker) {
        (self.attendance().clone(), self.shared.tasks.clone())
    }

    /// Kills everything of a private session, without a grace.
    pub fn end_private_session(&self, session: &Session) {
        self.private_sessions().remove(session.id());
        if let Some(ended) = session.end() {
            self.end_all(ended, Duration::ZERO);
        }
    }

    /// Lets the caller into a session that it knows the name of.
    pub fn resume_session(
        &self,
        id: &str,
        resume: Resume,
        link: Arc<dyn Link>,
    ) -> Result<(Session, Epoch), ResumeRefusal> {
        let known = self.sessions().get(&SessionId::claimed(id)).cloned();
        let session = known.ok_or(ResumeRefusal::Gone)?;
        let epoch = session.resume(
            clock::now(),
            resume.takeover,
            resume.delivery,
            resume.ttl,
            link,
        )?;
        self.let_catch_up(&session, epoch);
        Ok((session, epoch))
    }

    /// What was retained when a client came back stays for a while, so that it
    /// can read what it missed.
    fn let_catch_up(&self, session: &Session, epoch: Epoch) {
        let processes = session.processes();
        let grace = self.shared.limits.catch_up;
        let engine = self.clone();
        let session = session.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = engine.shared.ending.cancelled() => {}
            }
            if session.is_current(epoch) {
                for process in processes {
                    process.release();
                }
            }
        });
    }

    /// A session by its name, without attaching to it; none if it has ended or
    /// its time is over.
    #[must_use]
    pub fn find_session(&self, id: &str) -> Option<Session> {
        let session = self.sessions().get(&SessionId::claimed(id)).cloned()?;
        let over = session
            .expires()
            .is_some_and(|expires| clock::now() >= expires);
        (!over).then_some(session)
    }

    /// Every session, oldest first.
    #[must_use]
    pub fn list_sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<_> = self.sessions().values().cloned().collect();
        sessions.sort_by_key(Session::created_at);
        sessions
    }

    /// The caller's connection is gone: the session stays for a while.
    pub fn detach(&self, session: &Session, epoch: Epoch) {
        let Some(detached) = session.detach(epoch, clock::now()) else {
            return;
        };
        tracing::debug!(session = %session.id(), "session detached");
        self.end_if_forgotten(session);
        let Detached::Until(expires) = detached else {
            return;
        };
        let engine = self.clone();
        let waiting = session.clone();
        let timer = self.shared.tasks.spawn(async move {
            tokio::select! {
                () = sleep_until(expires.into()) => {}
                () = engine.shared.ending.cancelled() => return,
            }
            if let Some(ended) = waiting.expire(clock::now()) {
                tracing::info!(session = %waiting.id(), "session expired");
                engine.sessions().remove(waiting.id());
                engine.end_all(ended, engine.shared.limits.end_grace);
            }
        });
        session.set_timer(timer.abort_handle());
    }

    /// Ends sessions that have nothing any more and that nobody is attached to.
    pub(super) fn end_forgotten_sessions(&self) {
        for session in self.list_sessions() {
            self.end_if_forgotten(&session);
        }
    }

    fn end_if_forgotten(&self, session: &Session) {
        if self.shared.limits.end_forgotten_sessions && session.end_if_forgotten() {
            tracing::info!(session = %session.id(), "session ended: all it had is forgotten");
            self.sessions().remove(session.id());
        }
    }

    /// Ends a session and everything in it, and waits until that is gone.
    pub async fn end_session(&self, session: &Session) {
        let processes = self.begin_end(session);
        let all_closed = async {
            for process in &processes {
                process.gone().await;
            }
        };
        // The ladder ends in a kill, so this is never waited for in full.
        let _ = tokio::time::timeout(self.shared.limits.end_grace * 2, all_closed).await;
    }

    pub(super) fn begin_end(&self, session: &Session) -> Vec<Process> {
        self.sessions().remove(session.id());
        match session.end() {
            Some(ended) => self.end_all(ended, self.shared.limits.end_grace),
            None => Vec::new(),
        }
    }

    /// Ends everything with the ladder. What a process left running when its
    /// own actor was done needs somebody else to see it off.
    fn end_all(&self, processes: Vec<Process>, grace: Duration) -> Vec<Process> {
        for process in &processes {
            process.abandon();
            process.end(Some(grace));
            if process.is_done() {
                let engine = self.clone();
                let process = process.clone();
                self.shared.tasks.spawn(async move {
                    process.see_the_ladder_through().await;
                    engine.check_out(&process);
                });
            }
        }
        processes
    }
}

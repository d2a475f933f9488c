//! Opens, resumes, detaches and ends sessions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::Engine;
use crate::{
    Delivery, Epoch, Link, Peer, PeerPermit, Process, Reservation, ResumeError, Session, SessionId,
    SessionOptions, Start, StartError, Ttl, session::Detached,
};

/// Options of resuming a session.
#[derive(Clone, Copy, Debug)]
pub struct ResumeOptions {
    /// The caller.
    pub peer: Peer,
    /// Take it over from another connection.
    pub takeover: bool,
    /// Change the delivery.
    pub delivery: Option<Delivery>,
    /// Change the lease.
    pub ttl: Option<Ttl>,
}

impl Engine {
    /// Opens a session, attached to the caller. If there are too many, ends a detached one without
    /// processes; returns `None` if there is none.
    #[must_use]
    pub fn open_session(
        &self,
        options: SessionOptions,
        link: Arc<dyn Link>,
    ) -> Option<(Session, Epoch)> {
        let permit = self.session_permit(options.peer)?;
        let mut sessions = self.shared.sessions.lock();
        if self.shared.ending.is_cancelled() {
            return None;
        }
        let (session, epoch) = self.create_session(options, Some(link), Some(permit));
        sessions.insert(session.id().clone(), session.clone());
        Some((session, epoch))
    }

    /// Reserves a slot for a process that is about to start. `max_sessions` is how many sessions of the peer
    /// may have processes at once. Others don't count, so that a client can always list and end its processes.
    ///
    /// # Errors
    /// If the id is in use, the session has ended, or too many sessions have processes.
    pub fn reserve(
        &self,
        session: &Session,
        start: &Start,
        max_sessions: Option<usize>,
    ) -> Result<Reservation, StartError> {
        let Some(max) = max_sessions.filter(|_| !session.is_private()) else {
            return session.reserve(start);
        };
        // Otherwise two sessions could get their first process at once.
        let _turn = self.shared.first_starts.lock();
        if !session.has_processes() && self.count_busy_sessions(session.peer(), max) >= max {
            return Err(StartError::SessionLimit(max));
        }
        session.reserve(start)
    }

    /// Counts the sessions of a peer that have processes, up to `max`.
    fn count_busy_sessions(&self, peer: Peer, max: usize) -> usize {
        let sessions = self.shared.sessions.lock();
        let of_peer = sessions.values().filter(|other| other.peer() == peer);
        let busy = of_peer.filter(|other| other.has_processes());
        busy.take(max).count()
    }

    fn session_permit(&self, peer: Peer) -> Option<PeerPermit> {
        let limiter = &self.shared.session_limiter;
        loop {
            if let Some(permit) = limiter.acquire(peer) {
                return Some(permit);
            }
            // Evict the oldest unused session of the peer with the most sessions. Never evict from a
            // peer with fewer sessions than the caller.
            let unused = self.list_sessions().into_iter();
            let unused = unused.filter(Session::is_unused);
            let counted = unused.map(|session| (limiter.held_by(session.peer()), session));
            let oldest = counted.reduce(|most, next| if next.0 > most.0 { next } else { most });
            let (held, oldest) = oldest?;
            if held < limiter.held_by(peer) {
                return None;
            }
            if oldest.end_if_unused() {
                tracing::info!(session = %oldest.id(), "session without processes ended: too many sessions");
                self.shared.sessions.lock().remove(oldest.id());
            }
        }
    }

    /// Opens a session for a single connection, invisible to others. The connection ends
    /// it with [`Engine::end_private_session`]. Returns `None` during shutdown.
    #[must_use]
    pub fn open_private_session(&self, peer: Peer) -> Option<(Session, Epoch)> {
        let mut private = self.shared.private_sessions.lock();
        if self.shared.ending.is_cancelled() {
            return None;
        }
        let options = SessionOptions {
            peer,
            principal: None,
            ttl: Ttl::For(Duration::ZERO),
            label: None,
            delivery: Delivery::Push,
        };
        let (session, epoch) = self.create_session(options, None, None);
        private.insert(session.id().clone(), session.clone());
        Some((session, epoch))
    }

    fn create_session(
        &self,
        options: SessionOptions,
        link: Option<Arc<dyn Link>>,
        permit: Option<PeerPermit>,
    ) -> (Session, Epoch) {
        let (activity, tasks) = (self.shared.activity.clone(), self.shared.tasks.clone());
        Session::new(options, link, permit, activity, tasks)
    }

    /// Kills all processes of a private session without a grace period.
    pub fn end_private_session(&self, session: &Session) {
        self.begin_end(session);
    }

    /// Attaches the caller to an existing session.
    pub fn resume_session(
        &self,
        id: &str,
        resume: ResumeOptions,
        link: Arc<dyn Link>,
    ) -> Result<(Session, Epoch), ResumeError> {
        let session = self
            .session(id)
            .filter(|session| resume.peer.may_resume(session.peer()))
            .ok_or(ResumeError::Gone)?;
        let epoch = session.resume(self.now(), resume, link)?;
        // Keep the retained output for a while, so that the client can read what it missed.
        let processes = session.processes();
        let catch_up = self.shared.limits.catch_up;
        let ending = self.shared.ending.clone();
        let resumed = session.clone();
        self.shared.tasks.spawn(async move {
            let _ = tokio::time::timeout(catch_up, ending.cancelled()).await;
            if resumed.is_current(epoch) {
                processes.iter().for_each(Process::resume_eviction);
            }
        });
        Ok((session, epoch))
    }

    fn session(&self, id: &str) -> Option<Session> {
        let sessions = self.shared.sessions.lock();
        sessions.get(&SessionId::claimed(id)).cloned()
    }

    /// Finds a session without attaching to it. Returns `None` if it has ended or expired.
    #[must_use]
    pub fn find_session(&self, id: &str) -> Option<Session> {
        let session = self.session(id)?;
        let expires = session.expires();
        expires
            .is_none_or(|expires| self.now() < expires)
            .then_some(session)
    }

    /// All sessions, oldest first.
    #[must_use]
    pub fn list_sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<_> = self.shared.sessions.lock().values().cloned().collect();
        sessions.sort_by_key(Session::created_at);
        sessions
    }

    /// Detaches the caller's connection. The session stays for its lease.
    pub fn detach(&self, session: &Session, epoch: Epoch) {
        let empty_ttl = self.shared.limits.empty_session_ttl;
        let Some(detached) = session.detach(epoch, self.now(), empty_ttl) else {
            return;
        };
        tracing::debug!(session = %session.id(), "session detached");
        self.end_if_forgotten(session);
        if let Detached::Until(expires) = detached {
            self.end_when_expired(session, expires);
        }
    }

    /// Starts the task that ends a session when it expires.
    fn end_when_expired(&self, session: &Session, expires: Instant) {
        let engine = self.clone();
        let waiting = session.clone();
        let timer = self.shared.tasks.spawn(async move {
            tokio::select! {
                () = engine.shared.ending.cancelled() => return,
                () = engine.sleep_until(Some(expires)) => {}
            }
            if let Some(ended) = waiting.expire(engine.now()) {
                tracing::info!(session = %waiting.id(), "session expired");
                engine.shared.sessions.lock().remove(waiting.id());
                engine.end_all(ended, engine.shared.limits.termination_grace);
            }
        });
        session.set_timer(timer.abort_handle());
    }

    /// Forgets closed processes. A detached session whose last process is forgotten ends or gets the
    /// lease of a session without processes.
    pub(super) fn forget_closed(&self, closed: Vec<(Session, Process)>) {
        for (session, process) in &closed {
            session.forget(process);
        }
        if self.shared.limits.end_forgotten_sessions {
            // Check all processes, because the leftover processes of another process may have ended.
            self.list_sessions()
                .iter()
                .for_each(|session| self.end_if_forgotten(session));
        }
        for (session, _) in closed {
            let empty_ttl = self.shared.limits.empty_session_ttl;
            if let Some(expires) = session.shorten_empty_lease(self.now(), empty_ttl) {
                self.end_when_expired(&session, expires);
            }
        }
    }

    fn end_if_forgotten(&self, session: &Session) {
        if self.shared.limits.end_forgotten_sessions && session.end_if_forgotten() {
            tracing::info!(session = %session.id(), "session ended: all its processes are forgotten");
            self.shared.sessions.lock().remove(session.id());
        }
    }

    /// Ends a session and waits until its processes are gone. Returns the ids of those that were
    /// killed and not seen to end within twice the grace period; they are killed again until they are
    /// gone.
    pub async fn end_session(&self, session: &Session) -> Vec<String> {
        let processes = self.begin_end(session);
        let all_closed = async {
            for process in &processes {
                process.wait_until_gone().await;
            }
        };
        // Termination ends with a kill, so the timeout is normally not reached.
        let _ = tokio::time::timeout(self.shared.limits.termination_grace * 2, all_closed).await;
        let alive = processes.iter().filter(|process| process.has_leftovers());
        alive.map(|process| process.id().to_owned()).collect()
    }

    /// Ends a session and begins to terminate its processes.
    pub(super) fn begin_end(&self, session: &Session) -> Vec<Process> {
        let (sessions, grace) = if session.is_private() {
            (&self.shared.private_sessions, Duration::ZERO)
        } else {
            (&self.shared.sessions, self.shared.limits.termination_grace)
        };
        sessions.lock().remove(session.id());
        let ended = session.end().unwrap_or_default();
        self.end_all(ended, grace)
    }

    /// Terminates processes with a grace period. If the actor of a process is done, a new task
    /// waits for its leftover processes.
    fn end_all(&self, processes: Vec<Process>, grace: Duration) -> Vec<Process> {
        for process in &processes {
            process.detach(Delivery::Push);
            process.terminate(Some(grace));
            if process.is_done() {
                let engine = self.clone();
                let process = process.clone();
                self.shared.tasks.spawn(async move {
                    process.wait_until_dead().await;
                    engine.remove_unless_leftovers(&process);
                });
            }
        }
        processes
    }
}

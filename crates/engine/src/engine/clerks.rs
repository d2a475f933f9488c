//! Confined processes of our own that do file operations.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use outpost_files::{Clerk, Confined, Files, Here, Line};
use outpost_process::{Child, Stdio, Watched};
use outpost_sandbox::{
    Hold, PrepareError, Program, Refusal, Sandbox, is_placeholder, policy::Policy,
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Engine,
    attempts::Attempts,
    confining::{self, GONE_WITHIN, Hired, Wish},
};
use crate::StartError;

/// A clerk that nobody needs any more has this long to leave by itself: what it was writing under a
/// name goes with it.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// What a clerk is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To look, and nothing else: whatever may be written is only to be read.
    Look,
    /// To change something.
    Change,
}

/// How a clerk leaves. Until it has, there may be something on the host that keeps paths absent.
#[derive(Clone, Debug, Default)]
pub struct Departure {
    /// Cancelled when nobody holds the other end of its line,
    unneeded: CancellationToken,
    /// and when nothing of it is left.
    gone: CancellationToken,
}

impl Departure {
    /// Waits until a clerk that was dropped has gone, which takes seconds at most. One that
    /// somebody still has is not waited for.
    pub async fn complete(&self) {
        if self.unneeded.is_cancelled() {
            self.gone.cancelled().await;
        }
    }
}

impl Engine {
    /// Somebody who does file operations within these limits and can do all that the server can.
    /// What only keeps a path absent for a confined process counts as missing.
    #[must_use]
    pub fn free_clerk(&self, files: Files) -> Clerk {
        Clerk::Here(Here {
            files,
            held: self.held(),
            is_held: is_placeholder,
        })
    }

    /// Somebody who does file operations within these limits, confined by this policy; `tmpdir` is
    /// what a process would have as its `TMPDIR`. It is a process, counts as one, and leaves when it
    /// is dropped.
    ///
    /// # Errors
    /// When it can't be confined as it should, or there are too many processes.
    pub async fn confined_clerk(
        &self,
        policy: Policy,
        tmpdir: Option<OsString>,
        purpose: Purpose,
        files: Files,
    ) -> Result<(Clerk, Departure), StartError> {
        let shared = &self.shared;
        if shared.ending.is_cancelled() {
            return Err(StartError::SessionEnded);
        }
        let place = shared.places.clone().try_acquire_owned();
        let place = place.map_err(|_| StartError::TooMany)?;
        let mut attempts = Attempts::within(shared.limits.confine_within);
        let stays = loop {
            let stays = self.hire(&policy, tmpdir.clone(), purpose).await;
            if !attempts.again(&stays) {
                break stays;
            }
        };
        let Hired {
            child,
            hold,
            socket,
            mut masks,
        } = stays?;
        masks.held = self.held();
        let departure = Departure::default();
        let needed = departure.unneeded.clone();
        let attendant = Attendant {
            child,
            hold,
            unneeded: needed.clone(),
            ending: shared.ending.clone(),
            _place: place,
        };
        let gone = departure.gone.clone().drop_guard();
        shared.tasks.spawn(async move {
            attendant.attend().await;
            drop(gone);
        });
        let line = Line::asking(
            socket,
            shared.limits.clerk_answers_within,
            needed.drop_guard(),
        );
        let line = line.map_err(|error| Refusal::from(PrepareError::from(error)))?;
        let clerk = Clerk::Confined(Confined { line, files, masks });
        Ok((clerk, departure))
    }

    /// A process that can be asked, as things are now.
    async fn hire(
        &self,
        policy: &Policy,
        tmpdir: Option<OsString>,
        purpose: Purpose,
    ) -> Result<Hired, StartError> {
        let shared = &self.shared;
        let wish = Wish {
            policy: policy.clone(),
            tmpdir,
            clerk: Some(purpose),
        };
        let within = shared.limits.confine_within;
        let prepared = confining::confine(
            shared.sandbox.as_ref(),
            &shared.preparing,
            wish,
            Program::none(),
            Stdio::Pipes { stdin: false },
            within,
        );
        let (command, confinement) = prepared.await?;
        let child = shared.spawner.spawn(command).await;
        let child = child.map_err(confining::not_carried)?;
        confinement.see_staying(child, within).await
    }

    /// Where something may stand that only keeps a path absent.
    fn held(&self) -> Vec<PathBuf> {
        let sandbox = self.shared.sandbox.as_ref();
        sandbox.map(Sandbox::placeholders).unwrap_or_default()
    }
}

/// Who looks after a clerk until nothing of it is left.
struct Attendant {
    child: Child,
    hold: Hold,
    /// Cancelled when nobody holds the other end of its line.
    unneeded: CancellationToken,
    /// Cancelled when the engine ends.
    ending: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Attendant {
    async fn attend(mut self) {
        let left = tokio::select! {
            _ = self.child.exit.wait() => true,
            () = self.ending.cancelled() => false,
            () = self.unneeded.cancelled() => {
                timeout(LEAVES_WITHIN, self.child.exit.wait()).await.is_ok()
            }
        };
        if !left {
            if let Err(error) = self.child.control.kill_tree() {
                tracing::warn!(%error, "killing a confined file operation failed");
            }
            let _ = timeout(GONE_WITHIN, self.child.exit.wait()).await;
        }
        let first = self
            .hold
            .first()
            .and_then(|first| first.map(Watched::new).transpose());
        match first {
            Ok(Some(first)) => {
                let _ = timeout(GONE_WITHIN, first.readable()).await;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a confined file operation can't be seen to its end");
            }
        }
        self.child.exit.reap();
        self.child.control.settle();
    }
}

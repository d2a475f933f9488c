//! A start that is under way, and what becomes of it if nobody waits for it.

use std::sync::Arc;

use outpost_protocol::{Method, StartParams, StartResult};

use super::{
    core::Core,
    line::{CallError, Line, Reply, Starting},
    tracked::Tracked,
};
use crate::Error;

/// Undoes a start when it is dropped before it is done: what was asked for is
/// ended, as far as it came of this start.
pub(super) struct Undo<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) tracked: &'a Arc<Tracked>,
    pub(super) made_up: bool,
    /// Where the answer comes, once the server was asked.
    pub(super) asked: Option<Reply>,
    pub(super) done: bool,
}

impl Undo<'_> {
    /// Asks for the process and waits for the answer.
    pub(super) async fn start(
        &mut self,
        line: &Line,
        params: &StartParams,
    ) -> Result<(), CallError> {
        let starting = Starting {
            id: params.process_id.clone(),
            made_up: self.made_up,
        };
        let reply = self.asked.insert(line.ask_to_start(params, starting)?);
        let answer: Result<StartResult, _> = line.answer(Method::ProcessStart, reply).await;
        self.asked = None;
        match answer {
            Ok(_) => {
                self.done = true;
                self.tracked.arrived();
                Ok(())
            }
            Err(error) => {
                if let CallError::Nonsense(..) = error {
                    self.end();
                }
                Err(error)
            }
        }
    }

    fn end(&self) {
        self.core.strays().add(self.tracked.id());
        self.core.end_unwanted(self.tracked.id());
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.core.remove(self.tracked);
        self.tracked.fail(Error::UnknownProcess {
            id: self.tracked.id().to_owned(),
        });
        let Some(mut reply) = self.asked.take() else {
            return;
        };
        // From here on, the reader of the connection notices that nobody waits.
        reply.close();
        match reply.try_recv() {
            Ok(Ok(_)) => self.end(),
            Ok(Err(_)) => {}
            // It is still to come. Another process may have a name that somebody
            // chose, so whether there is anything to end is known only then.
            Err(_) if self.made_up => self.end(),
            Err(_) => self.core.strays().add(self.tracked.id()),
        }
    }
}

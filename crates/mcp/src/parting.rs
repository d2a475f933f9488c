//! How a server is started so that it can be ended in good order, and how it is.

use std::time::Duration;

use outpost_client::{Error, Place, Process, Start, Terminate};
use tokio::time::timeout;

/// How long a server has between being told to end and being made to.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a server that is asked to end before it is made to, whoever ends it.
/// Released servers know no such thing, and kill at once.
pub async fn start(place: &dyn Place, start: Start) -> Result<Process, Error> {
    match place.start(start.clone().kill_grace(GRACE)).await {
        Err(Error::NotAnnounced { .. }) => place.start(start).await,
        started => started,
    }
}

/// Tells a server to end, and what it has left if it has exited itself. It goes on
/// ending when this returns.
pub async fn end(process: &Process) -> Result<(), Error> {
    let how = Terminate {
        // As its start said.
        grace: None,
        tree: true,
    };
    let told = match process.terminate_with(how).await {
        // Older servers know only those that run.
        Err(Error::NotAnnounced { .. }) => process.terminate().await,
        told => told,
    };
    match told {
        // What is forgotten elsewhere has ended.
        Ok(_) | Err(Error::UnknownProcess { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Ends the input of a server, which tells it that nobody wants anything any more,
/// and waits for its end as long as it may take. Then it has also read what it was
/// told last.
pub(crate) async fn dismiss(process: &Process, within: Duration) {
    let ending = async {
        // Where an input can't be ended, or has been, there is nothing to wait for.
        if process.close_stdin().await.is_ok() {
            let _ = process.wait().await;
        }
    };
    let _ = timeout(within, ending).await;
}

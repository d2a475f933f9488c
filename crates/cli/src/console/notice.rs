//! What a person is told beside the output of a process.

use std::io::Write;

use outpost_client::{Remote, Standing};

use super::RawMode;
use crate::render::out::note;

/// Writes lines to standard error that fit whatever mode the terminal is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    /// A terminal in raw mode stays in its column at the end of a line.
    raw: bool,
    /// What ends the waiting for a connection.
    way_out: Option<&'static str>,
}

impl Notice {
    /// Where the terminal may be in raw mode.
    pub(crate) fn beside(raw_mode: Option<&RawMode>) -> Self {
        Notice {
            raw: raw_mode.is_some_and(RawMode::is_raw),
            way_out: None,
        }
    }

    /// Says so too while a connection is lost.
    pub(crate) fn with_way_out(self, way_out: Option<&'static str>) -> Self {
        Notice { way_out, ..self }
    }

    pub(crate) fn say(self, text: &str) {
        if self.raw {
            // Nobody is left to hear it if this fails.
            let _ = write!(std::io::stderr(), "\r\noutpost: {text}\r\n");
        } else {
            note(text);
        }
    }

    /// Tells of each change of the connection, for as long as it is polled.
    pub(crate) async fn follow(self, remote: Option<&Remote>) {
        let Some(remote) = remote else {
            return std::future::pending::<()>().await;
        };
        let mut standing = remote.standing();
        // It may have been lost before we looked.
        standing.mark_changed();
        let mut lost = false;
        while standing.changed().await.is_ok() {
            let now = standing.borrow_and_update().clone();
            match now {
                Standing::Recovering if !lost => {
                    let way_out = self
                        .way_out
                        .map_or(String::new(), |key| format!(" ({key})"));
                    self.say(&format!("connection lost, reconnecting…{way_out}"));
                }
                Standing::Connected if lost => self.say("connected again"),
                // The process fails with the same words.
                _ => {}
            }
            lost = now == Standing::Recovering;
        }
        std::future::pending::<()>().await;
    }
}

//! Shared by the dialects whose processes belong to a connection: starting, reporting,
//! writing, resizing and killing. A dialect adds its messages.

mod control;
mod process_reporter;
mod start_request;
mod stream_cap;

pub(crate) use control::{kill, resize, write};
pub(crate) use process_reporter::{ExitMessage, ExitWithOutput, ProcessReporter};
pub(crate) use start_request::{Output, StartRequest};

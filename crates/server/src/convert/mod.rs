//! Conversions between engine and wire types, and error texts.

mod dialect;
mod error;
mod http;
mod process;

pub(crate) use dialect::{COMMAND, Dialect, SPAWN};
pub(crate) use error::{resize_error, resume_error, start_error};
pub(crate) use http::{CANCELLED, cancelled_request, fetch_error, request_error};
pub(crate) use process::{check_name, check_scoped_name, check_size, overlay};

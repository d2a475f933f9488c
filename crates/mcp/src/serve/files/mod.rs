//! What the file tools decide, without any file.
//!
//! - [`view`] is a part of a file, by lines or by bytes
//! - [`edit`] is an exact replacement
//! - [`ignore`] says what a search leaves alone
//! - [`grep`] finds lines

pub(super) mod edit;
pub(super) mod grep;
pub(super) mod ignore;
pub(super) mod view;

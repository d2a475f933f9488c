//! The pure part of the file tools.
//!
//! - [`line_range`]: reads a range of lines
//! - [`edit`]: exact text replacement
//! - [`grep`]: finds matching lines
//! - [`ignore`]: files that a search skips

pub(super) mod edit;
pub(super) mod grep;
pub(super) mod ignore;
pub(super) mod line_range;

//! The wire as JSON Schema, from the very types that parse it.
//!
//! [`documents`] gives one document for each method and notification, and one that has them all.
//! A document of a method describes the request as it is sent; its params are `#/$defs/params` and
//! its result is `#/$defs/result`. That of a notification describes the notification.
//!
//! - `table` says which types belong to which method: one line each, and the compiler asks for it
//! - `document` puts a document together, `absent` writes down that `null` means absent
//! - `types` are those whose form is made by hand
//!
//! Where one name stands for two things, each has a document of its own; the second is told apart by
//! the name of its face, as in `command-exec.v0.json`.

mod absent;
mod document;
mod table;
mod types;

pub use document::{BUNDLE, documents, file_name};

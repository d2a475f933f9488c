//! JSON Schema of the protocol, generated from the types that parse it.
//!
//! [`documents`] returns one document per method and notification, and one that contains all of
//! them. The document of a method describes the request; its params are `#/$defs/params` and its
//! result is `#/$defs/result`. The document of a notification describes the notification.
//!
//! - `table`: the types of each method, checked for completeness by the compiler
//! - `document`: builds a document; `absent` allows `null` for optional members
//! - `types`: schemas of types with hand-written serialization
//!
//! A name with two meanings has two documents. The second carries the name of its dialect, as in
//! `command-exec.v0.json`.

mod absent;
mod document;
mod table;
mod types;

pub use document::{BUNDLE, documents, file_name};

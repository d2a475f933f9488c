//! The wire dialects, one folder or file each, and the push feed that they share.

pub(crate) mod discovery;
pub(crate) mod exec;
pub(crate) mod feed;
pub(crate) mod fs;
pub(crate) mod http;
pub(crate) mod notifier;
pub(crate) mod per_connection;
pub(crate) mod session;

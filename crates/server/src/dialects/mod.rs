//! The wire dialects, one folder or file each, and the push feed that they share.

pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod feed;
pub(crate) mod fs;
pub(crate) mod http;
pub(crate) mod initialize;
pub(crate) mod scoped;
pub(crate) mod session;
pub(crate) mod spawn;
pub(crate) mod v0;

//! The faces that the engine shows on the wire, one folder or file each.

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

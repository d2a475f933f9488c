//! The faces that the engine shows on the wire, one folder or file each.

pub(crate) mod config;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod initialize;
pub(crate) mod session;

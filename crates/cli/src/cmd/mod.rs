//! The subcommands, one file each.

pub(crate) mod config;
pub(crate) mod keeper;
pub(crate) mod schema;
pub(crate) mod serve;

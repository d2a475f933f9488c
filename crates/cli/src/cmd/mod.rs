//! The subcommands, one file each.

pub(crate) mod config;
pub(crate) mod keeper;
pub(crate) mod serve;

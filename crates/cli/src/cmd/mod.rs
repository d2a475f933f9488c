//! The subcommands, one file each.

pub(crate) mod keeper;
pub(crate) mod run;
pub(crate) mod serve;

//! Subcommands with their arguments, one file each.

pub(crate) mod attach;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod doctor;
pub(crate) mod hidden;
pub(crate) mod hosts;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod mcp;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod watch;

//! Our own tools, through the SDK's client: in this program and behind a server,
//! and no difference to be seen.

mod bench;
mod by_hand;
mod commands;
mod directories;
mod files;
mod offer;
mod partings;
mod processes;
mod search;

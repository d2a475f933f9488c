//! The place behind a server.
//!
//! - [`dial`] makes byte streams of [`address`]es and [`launch`]ed commands,
//!   with [`tls`] where it is wanted
//! - [`line`] is one connection: calls and their answers, and its [`listen`]er;
//!   [`handshake`] opens or resumes the session on it
//! - [`core`] is what outlives a connection; [`calls`] are made through it,
//!   [`hearing`] is what it does with notifications, and [`strays`] are processes
//!   that nobody wants
//! - [`tracked`] is one process, whose [`puzzle`] puts events into their order;
//!   [`acks`] says what is acknowledged, and when
//! - [`surroundings`] are what it is like where the server is
//! - [`http`] makes requests, whose [`bodies`] arrive on the line they were made
//!   on
//! - [`supervise`] is the task that brings a lost connection back, the way that
//!   [`recovery`] decides
//! - [`place`] and [`reins`] are what the outside sees, set up by [`options`];
//!   a start under way is an [`undo`] until it is done, and [`distant`] is a
//!   process that is looked at and not followed
//! - [`cabinet`] has the files of the server: [`open_file`] is one that is read,
//!   [`draft`] one that is written, and both are kept by a [`file_handle`]

mod acks;
mod address;
mod bodies;
mod cabinet;
mod calls;
mod core;
mod dial;
mod distant;
mod draft;
mod file_handle;
mod handshake;
mod hearing;
mod http;
mod launch;
mod line;
mod listen;
mod open_file;
mod options;
mod place;
mod puzzle;
mod recovery;
mod reins;
mod strays;
mod supervise;
mod surroundings;
mod tls;
mod tracked;
mod unattended;
mod undo;

pub use address::public_address;
pub use dial::{DialError, Dialer, Transport};
pub use distant::Distant;
pub use options::{DeliveryChoice, Lease, RemoteLimits, RemoteOptions};
pub use place::{Cause, Remote, Standing};

//! The server over an in-memory transport, with time that stands still until
//! somebody waits for it.

mod anything;
mod faces;
mod handshake;
mod idle;
mod leases;
mod liveness;
mod peer;
mod reach;
mod room;
mod standing;

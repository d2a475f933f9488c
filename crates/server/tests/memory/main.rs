//! The server over an in-memory transport, with paused time.

mod admission;
mod cross_session;
mod dialects;
mod frozen_clock;
mod fuzz;
mod handshake;
mod idle;
mod leases;
mod liveness;
mod peer;
mod push;
mod stops;
mod watches;

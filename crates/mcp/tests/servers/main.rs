//! Servers, real ones and odd ones, in this program and behind a server.

mod cancelling;
mod misbehaving;
mod openings;
mod partings;
mod real;
mod revival;
mod stage;
mod transport;
mod web;
mod web_cancelling;

//! Messages, the handshake, HTTP.

mod envelope;
mod environment;
mod handshake;
mod http;
mod isolation;
mod malformed;
mod oversized;
mod reach;
mod sessions;
mod websocket;

//! Messages, the handshake, HTTP.

mod envelope;
mod environment;
mod handshake;
mod http;
mod isolation;
mod malformed;
mod oversized;
mod sessions;
mod websocket;

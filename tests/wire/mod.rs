//! Tests messages, the handshake and HTTP.

mod discovery;
mod envelope;
mod environment;
mod foreign_sessions;
mod handshake;
mod http;
mod isolation;
mod malformed;
mod members;
mod oversized;
mod sessions;
mod websocket;

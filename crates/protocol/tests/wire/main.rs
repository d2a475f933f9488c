//! Tests of the wire format.

mod app;
mod base64;
mod block_frame;
mod envelope;
mod envelope_model;
mod error_table;
mod from_server;
mod fs;
mod http;
mod members;
mod method;
mod output_frame;
mod params;
mod path_uri;
mod results;
mod sandbox;
mod schema;
mod strict_enums;
mod trace;

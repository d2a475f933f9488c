//! Black-box tests of the built binary, by area. Shared support is in the testkit.
//!
//! - [`wire`]: messages, the handshake, HTTP
//! - [`process`]: the `process/*` methods
//! - [`dialects`]: the other dialects, whose processes belong to a connection
//! - [`http`]: HTTP requests that the server makes for a client
//! - [`flow`]: ordering, limits, slow readers
//! - [`files`]: the `fs/*` methods
//! - [`serve`]: command line, listening, shutdown
//! - [`auth`]: authentication, TLS, principals
//! - [`cli`]: the commands for people
//! - [`mcp_serve`]: the tools for models
//! - [`mcp`]: MCP servers, local and remote
//! - [`config`]: configuration from files, variables and flags
//! - [`schema`]: the generated protocol schema
//! - [`released`]: replay of exchanges with released servers
//! - [`recording`]: replay of a released client's messages
//! - [`reliability`]: sessions, process trees, shortage of resources
//! - [`client`]: the Rust client, over links that are cut
//! - [`sandbox`]: sandboxed processes, and attempts to escape
//! - [`network`]: the proxies of processes
//! - [`chaos`]: random requests

mod auth;
mod chaos;
mod cli;
mod client;
mod config;
mod dialects;
mod files;
mod flow;
mod http;
mod mcp;
mod mcp_serve;
mod network;
mod process;
mod recording;
mod released;
mod reliability;
mod sandbox;
mod schema;
mod serve;
mod wire;

use outpost_testkit::{Client, Server, ServerCommand, Transport};

/// The server under test, not started yet.
fn outpost() -> ServerCommand {
    ServerCommand::new(env!("CARGO_BIN_EXE_outpost"))
}

/// A server whose `command/exec` isn't sandboxed by default: for tests of other behaviour, on hosts
/// without sandbox support.
fn unsandboxed_outpost() -> ServerCommand {
    outpost().args(&["--sandbox-default-profile", ":danger-full-access"])
}

/// Starts a server and a client that has completed its handshake.
async fn ready() -> (Server, Client) {
    ready_with(&[]).await
}

/// Starts a server with arguments, and a client that has completed its handshake.
async fn ready_with(args: &[&str]) -> (Server, Client) {
    let server = outpost().args(args).start().await;
    let client = server.client().await;
    (server, client)
}

/// Runs a test over each transport, each time with a new server that confines nothing by default,
/// and a client before its handshake.
#[expect(
    clippy::print_stderr,
    reason = "a failed test says which transport it was"
)]
async fn over_each_transport(test: impl AsyncFn(&Server, &Client)) {
    for transport in Transport::ALL {
        eprintln!("over {transport:?}:");
        let server = unsandboxed_outpost().on(transport).start().await;
        let client = server.connect().await;
        test(&server, &client).await;
    }
}

//! Black-box tests of the built binary, by area. What they share is in the testkit.
//!
//! - [`wire`]: messages, the handshake, HTTP
//! - [`process`]: what can be done with a process, verb by verb
//! - [`dialects`]: the other faces, whose processes belong to a connection
//! - [`http`]: requests that the server makes for a client
//! - [`flow`]: order, limits, slow readers
//! - [`files`]: `fs/*`, row by row
//! - [`serve`]: the command line, listening, ending
//! - [`cli`]: the commands for people
//! - [`mcp_serve`]: its tools for models
//! - [`mcp`]: MCP servers, wherever they run
//! - [`config`]: files, variables, flags, and what is shown of them
//! - [`schema`]: the protocol, written down
//! - [`recording`]: a conversation of a released client, said again
//! - [`reliability`]: sessions that hold, ends that are whole
//! - [`client`]: our own client, over links that are cut
//! - [`sandbox`]: confined processes, and those that try to get out
//! - [`chaos`]: whatever a client could say

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
mod process;
mod recording;
mod reliability;
mod sandbox;
mod schema;
mod serve;
mod wire;

use outpost_testkit::{Client, Launch, Server, Transport};

/// The server under test, not started yet.
fn outpost() -> Launch {
    Launch::of(env!("CARGO_BIN_EXE_outpost"))
}

/// The same, whose `command/exec` isn't confined unless its client says so: for tests that are about
/// something else, on hosts that can't confine.
fn free() -> Launch {
    outpost().args(&["--sandbox-default-profile", ":danger-full-access"])
}

/// A server as it comes, and a client whose handshake is done.
async fn ready() -> (Server, Client) {
    ready_with(&[]).await
}

/// A server with arguments, and a client whose handshake is done.
async fn ready_with(args: &[&str]) -> (Server, Client) {
    let server = outpost().args(args).start().await;
    let client = server.client().await;
    (server, client)
}

/// Does the same over each transport, each time with a server of its own that confines nothing by
/// itself, and a client that has said nothing yet.
#[expect(
    clippy::print_stderr,
    reason = "a failed test says which transport it was"
)]
async fn over_each_transport(test: impl AsyncFn(&Server, &Client)) {
    for transport in Transport::ALL {
        eprintln!("over {transport:?}:");
        let server = free().on(transport).start().await;
        let client = server.connect().await;
        test(&server, &client).await;
    }
}

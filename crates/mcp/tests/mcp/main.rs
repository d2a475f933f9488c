//! Tests of the pool of MCP servers, and of the tools of `outpost mcp serve`.

mod executor;
mod servers;
mod tools;

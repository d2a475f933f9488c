//! Tests the server's command line, listening and shutdown.

mod announcing;
mod command_line;
mod ending;
mod ending_stdio;
mod idle;
mod limits;
mod listening;
mod logs;
mod sockets;

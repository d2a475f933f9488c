//! The command line, listening, ending.

mod announcing;
mod command_line;
mod ending;
mod ending_stdio;
mod idle;
mod limits;
mod listening;
mod logs;
mod sockets;

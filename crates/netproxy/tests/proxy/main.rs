//! The proxy over real sockets. Names have public addresses, which are on the loopback here.

mod fixture;
mod http;
mod limits;
mod socks;

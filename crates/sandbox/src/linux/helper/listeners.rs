//! Listens in the network namespace of the sandboxed process, for the server.
//!
//! A socket belongs to the namespace that it was created in. The server accepts connections from inside
//! with a descriptor of the listener, so there is no path and no port on the host that another process
//! could connect to.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// The number of connections that wait for the server. The kernel limits it further.
const BACKLOG: i32 = 4096;

/// Listens on these ports of the loopback address.
pub(super) fn listen(ports: &[u16]) -> Result<Vec<OwnedFd>, Errno> {
    ports.iter().map(|port| listen_on(*port)).collect()
}

fn listen_on(port: u16) -> Result<OwnedFd, Errno> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

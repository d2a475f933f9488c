//! Connections to sockets.

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, ipproto};

/// How long to wait for the test's UDP server to answer.
const UDP_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) fn unix_stream(path: &str) -> io::Result<()> {
    UnixStream::connect(path)?.write_all(b"x")
}

pub(crate) fn unix_abstract(name: &str) -> io::Result<()> {
    let address = SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address)?.write_all(b"x")
}

pub(crate) fn unix_datagram(path: &str) -> io::Result<()> {
    UnixDatagram::unbound()?.send_to(b"x", path).map(drop)
}

/// Sends through one end of a socket pair.
pub(crate) fn unix_pair(path: &str) -> io::Result<()> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
    let (one, _other) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new(path)?;
    rustix::net::sendto(one, b"x", SendFlags::empty(), &address)?;
    Ok(())
}

/// Creates a socket pair of any domain.
pub(crate) fn pair(domain: &str) -> io::Result<()> {
    let domain = domain.parse().map_err(io::Error::other)?;
    let (family, kind) = (AddressFamily::from_raw(domain), SocketType::STREAM);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    Ok(())
}

pub(crate) fn tcp(port: &str) -> io::Result<()> {
    let port: u16 = port.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.read_exact(&mut [0])
}

pub(crate) fn udp(port: &str) -> io::Result<()> {
    let port: u16 = port.parse().map_err(io::Error::other)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(UDP_TIMEOUT))?;
    socket.send_to(b"x", ("127.0.0.1", port))?;
    socket.recv(&mut [0]).map(drop)
}

pub(crate) fn raw() -> io::Result<()> {
    let protocol = Some(ipproto::ICMP);
    rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol)?;
    Ok(())
}

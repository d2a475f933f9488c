//! Connections to sockets.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
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

/// Listens on a path and connects to it, by an absolute and a relative path and through a link.
pub(crate) fn unix_inside(path: &str) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    std::env::set_current_dir(directory)?;
    let link = format!("{path}-link");
    std::os::unix::fs::symlink(name, &link)?;
    for path in [path, name, &link] {
        exchange(&listener, UnixStream::connect(path)?)?;
    }
    // As a service does that finds a stale socket.
    drop(listener);
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        result => Err(io::Error::other(format!("{result:?}"))),
    }
}

/// Listens on an abstract name and connects to it.
pub(crate) fn unix_inside_abstract(name: &str) -> io::Result<()> {
    let address = SocketAddr::from_abstract_name(name)?;
    let listener = UnixListener::bind_addr(&address)?;
    exchange(&listener, UnixStream::connect_addr(&address)?)
}

fn exchange(listener: &UnixListener, mut connected: UnixStream) -> io::Result<()> {
    let (mut accepted, _) = listener.accept()?;
    connected.write_all(b"x")?;
    accepted.read_exact(&mut [0])?;
    accepted.write_all(b"y")?;
    connected.read_exact(&mut [0])
}

/// Connects a socket for packets to a path that it listens on.
pub(crate) fn unix_inside_packets(path: &str) -> io::Result<()> {
    let kind = SocketType::SEQPACKET;
    let socket = || rustix::net::socket(AddressFamily::UNIX, kind, None);
    let (listener, address) = (socket()?, SocketAddrUnix::new(path)?);
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 1)?;
    let connected = socket()?;
    rustix::net::connect(&connected, &address)?;
    rustix::net::accept(&listener)?;
    Ok(())
}

/// More connections than wait in the queue of a listener, which accepts them later.
pub(crate) fn unix_inside_waiting(path: &str) -> io::Result<()> {
    const CONNECTIONS: usize = 8;
    let (listener, address) = (
        rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?,
        SocketAddrUnix::new(path)?,
    );
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 0)?;
    let connect = |path: String| std::thread::spawn(move || UnixStream::connect(path));
    let connecting: Vec<_> = (0..CONNECTIONS).map(|_| connect(path.to_owned())).collect();
    for _ in 0..CONNECTIONS {
        rustix::net::accept(&listener)?;
    }
    for connected in connecting {
        connected.join().map_err(|_| io::Error::other("panic"))??;
    }
    Ok(())
}

/// Connects to a port of its own.
pub(crate) fn tcp_inside() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut connected = TcpStream::connect(listener.local_addr()?)?;
    listener.accept()?.0.write_all(b"x")?;
    connected.read_exact(&mut [0])
}

/// Listens on a path, says so by opening the FIFO, and waits for a connection.
pub(crate) fn unix_serve(path: &str, fifo: &str) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    std::fs::write(fifo, "ready")?;
    listener.accept()?.0.read_exact(&mut [0])
}

/// Moves another socket to the path of its own, and connects to that path.
pub(crate) fn unix_renamed(own: &str, other: &str) -> io::Result<()> {
    let _listener = UnixListener::bind(own)?;
    UnixStream::connect(own)?;
    std::fs::rename(other, own)?;
    unix_stream(own)
}

/// Links another socket to a second name, and connects to that.
pub(crate) fn unix_linked(own: &str, other: &str) -> io::Result<()> {
    std::fs::hard_link(other, own)?;
    unix_stream(own)
}

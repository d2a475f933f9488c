//! The user and the cgroup of a client on loopback, by `sock_diag(7)`.

use std::{
    io,
    mem::size_of,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
};

use parking_lot::Mutex;
use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink},
};

// From linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_NOCOOKIE: u32 = u32::MAX;
const INET_DIAG_CGROUP_ID: u16 = 21;
const IPPROTO_TCP: u8 = 6;
const ALL_STATES: u32 = u32::MAX;

/// `sizeof(struct nlmsghdr)`.
const HEADER_BYTES: usize = 16;
/// `sizeof(struct inet_diag_sockid)`.
const SOCKET_ID_BYTES: usize = 48;
/// The offset of `inet_diag_msg.id` in a reply, which begins with the ports.
const PORTS_OFFSET: usize = HEADER_BYTES + 4;
/// The offset of `inet_diag_msg.idiag_uid` in a reply.
const UID_OFFSET: usize = HEADER_BYTES + 4 + SOCKET_ID_BYTES + 12;
/// The offset of the attributes in a reply, after `idiag_uid` and `idiag_inode`.
const ATTRIBUTES_OFFSET: usize = UID_OFFSET + 8;

/// The user that created a socket, and the cgroup that it was created in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketOwner {
    pub(crate) uid: u32,
    /// `None` if the kernel does not tell.
    pub(crate) cgroup: Option<u64>,
}

/// Finds owners of sockets. It keeps its own socket, so that a lookup needs no free descriptor.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    /// Opened by the first lookup. Held during a request and its reply.
    netlink: Mutex<Option<OwnedFd>>,
}

impl SocketOwners {
    /// Finds the owner of the client's end of a TCP connection on this host. Asks the kernel for this one
    /// socket and waits for nothing. Fails if the client has closed its socket, because its owner is
    /// unknown then.
    pub(crate) fn of_client(
        &self,
        client: SocketAddr,
        server: SocketAddr,
    ) -> io::Result<SocketOwner> {
        let mut netlink = self.netlink.lock();
        let socket = match netlink.take() {
            Some(socket) => socket,
            None => open()?,
        };
        rustix::net::send(&socket, &request(client, server), SendFlags::empty())?;
        let mut reply = [0; 1024];
        // The kernel replies before `send` returns.
        let (bytes, _) = rustix::net::recv(&socket, &mut reply, RecvFlags::DONTWAIT)?;
        // After an error above, a late reply could be taken for that of the next request.
        *netlink = Some(socket);
        parse(&reply[..bytes], [client.port(), server.port()])
    }
}

fn open() -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
}

fn request(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let (client_ip, server_ip) = (client.ip().to_canonical(), server.ip().to_canonical());
    let family = if client_ip.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 8 + SOCKET_ID_BYTES);
    let length = (HEADER_BYTES + 8 + SOCKET_ID_BYTES) as u32;
    bytes.extend(length.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // The sequence number and the sender's port, which is the kernel's choice.
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
    bytes.extend(ALL_STATES.to_ne_bytes());
    bytes.extend(client.port().to_be_bytes());
    bytes.extend(server.port().to_be_bytes());
    for ip in [client_ip, server_ip] {
        match ip {
            IpAddr::V4(ip) => bytes.extend(ip.octets().into_iter().chain([0; 12])),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
    }
    // Any interface.
    bytes.extend([0; 4]);
    bytes.extend(INET_DIAG_NOCOOKIE.to_ne_bytes());
    bytes.extend(INET_DIAG_NOCOOKIE.to_ne_bytes());
    bytes
}

/// Parses the reply about a socket with these local and remote ports.
fn parse(reply: &[u8], ports: [u16; 2]) -> io::Result<SocketOwner> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let u16_at = |at: usize| Some(u16::from_ne_bytes(reply.get(at..)?.first_chunk().copied()?));
    let u32_at = |at: usize| Some(u32::from_ne_bytes(reply.get(at..)?.first_chunk().copied()?));
    match u16_at(4) {
        Some(SOCK_DIAG_BY_FAMILY) => {}
        Some(NLMSG_ERROR) => {
            let errno = u32_at(HEADER_BYTES).ok_or_else(invalid)?.cast_signed();
            return Err(Errno::from_raw_os_error(-errno).into());
        }
        _ => return Err(invalid()),
    }
    // Without such a connection, the kernel replies with a listening socket on the client's port.
    let found = [PORTS_OFFSET, PORTS_OFFSET + 2].map(|at| u16_at(at).map(u16::from_be));
    if found != ports.map(Some) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let uid = u32_at(UID_OFFSET).ok_or_else(invalid)?;
    // A closed socket has no inode, and its user id is that of root.
    if u32_at(UID_OFFSET + 4).ok_or_else(invalid)? == 0 {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let mut cgroup = None;
    let mut at = ATTRIBUTES_OFFSET;
    while let (Some(length), Some(kind)) = (u16_at(at), u16_at(at + size_of::<u16>())) {
        let value = reply.get(at + 4..).and_then(<[u8]>::first_chunk::<8>);
        if kind == INET_DIAG_CGROUP_ID {
            cgroup = value.map(|value| u64::from_ne_bytes(*value));
        }
        if length < 4 {
            break;
        }
        at += usize::from(length).next_multiple_of(4);
    }
    Ok(SocketOwner { uid, cgroup })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Returns both ends of a connection and their addresses, the client's first.
    fn connect(address: &str) -> ([TcpStream; 2], [SocketAddr; 2]) {
        let listener = TcpListener::bind(address).unwrap();
        let server = listener.local_addr().unwrap();
        let stream = TcpStream::connect(server).unwrap();
        let (accepted, client) = listener.accept().unwrap();
        ([stream, accepted], [client, server])
    }

    #[test]
    fn owner_of_a_loopback_client_is_found() {
        let own = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "127.9.8.7:0", "[::1]:0"] {
            let (_ends, [client, server]) = connect(address);
            let owner = SocketOwners::default().of_client(client, server).unwrap();
            assert_eq!(owner.uid, own, "{address}");
        }
    }

    #[test]
    fn closed_socket_has_no_owner() {
        let ([stream, _accepted], [client, server]) = connect("127.0.0.1:0");
        drop(stream);
        SocketOwners::default()
            .of_client(client, server)
            .unwrap_err();
    }

    #[test]
    fn missing_socket_is_an_error() {
        let (_ends, [client, server]) = connect("127.0.0.1:0");
        let other = SocketAddr::new(client.ip(), 1);
        SocketOwners::default()
            .of_client(other, server)
            .unwrap_err();
    }

    #[test]
    fn listening_socket_on_the_port_of_the_client_is_not_its_owner() {
        let (_ends, [_, server]) = connect("127.0.0.1:0");
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = SocketAddr::from(([203, 0, 113, 5], port));
        SocketOwners::default()
            .of_client(client, server)
            .unwrap_err();
    }

    #[test]
    fn short_and_foreign_replies_are_errors() {
        let ports = [258, 772];
        let parse = |reply: &[u8]| parse(reply, ports);
        for length in 0..ATTRIBUTES_OFFSET {
            parse(&vec![0; length]).unwrap_err();
        }
        let mut reply = vec![0; ATTRIBUTES_OFFSET];
        reply[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        reply[UID_OFFSET] = 7;
        reply[PORTS_OFFSET..PORTS_OFFSET + 4].copy_from_slice(&[1, 2, 3, 4]);
        parse(&reply).unwrap_err();
        reply[UID_OFFSET + 4] = 1;
        let owner = SocketOwner {
            uid: 7,
            cgroup: None,
        };
        assert_eq!(parse(&reply).unwrap(), owner);
        reply.extend([12, 0, INET_DIAG_CGROUP_ID as u8, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&reply).unwrap().cgroup, Some(9));
        // An attribute without a length ends the list.
        reply.extend([0; 4]);
        assert_eq!(parse(&reply).unwrap().cgroup, Some(9));
    }
}

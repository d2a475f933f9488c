//! SOCKS5 as in RFC 1928: `CONNECT` without authentication, for names and addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use outpost_types::NetworkProtocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Shared, relay};
use crate::Host;
use crate::authorizer::Request;
use crate::host::InvalidHost;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

impl Reply {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Reply::ConnectionRefused,
            io::ErrorKind::NetworkUnreachable => Reply::NetworkUnreachable,
            io::ErrorKind::HostUnreachable | io::ErrorKind::TimedOut => Reply::HostUnreachable,
            _ => Reply::GeneralFailure,
        }
    }
}

/// Serves one connection of the program.
pub(super) async fn serve(shared: &Arc<Shared>, mut stream: TcpStream, client: SocketAddr) {
    let limits = &shared.limits;
    let Ok(Ok(Some(command))) = timeout(limits.head_timeout, negotiate(&mut stream)).await else {
        return;
    };
    let (host, port) = match command {
        Ok(target) => target,
        Err(reply) => return drop(send(&mut stream, reply).await),
    };
    let request = Request {
        protocol: NetworkProtocol::Socks5Tcp,
        host,
        port,
        method: None,
        client: Some(client),
    };
    let opened = match shared.authorizer.authorize(&request).await {
        Ok(authorized) => shared
            .open_tunnel(&request, authorized)
            .await
            .map_err(|error| Reply::of(&error)),
        Err(_) => Err(Reply::NotAllowed),
    };
    match opened {
        Ok(target) => {
            if send(&mut stream, Reply::Succeeded).await.is_ok() {
                relay(stream, target, limits.idle_timeout).await;
            }
        }
        Err(reply) => drop(send(&mut stream, reply).await),
    }
}

/// Reads the greeting and the request. Returns the target, or the reply to a request that has none; none
/// if the program offers no acceptable method.
async fn negotiate(stream: &mut TcpStream) -> io::Result<Option<Result<(Host, u16), Reply>>> {
    if stream.read_u8().await? != VERSION {
        return Ok(None);
    }
    let mut methods = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut methods).await?;
    let is_acceptable = methods.contains(&NO_AUTHENTICATION);
    let method = match is_acceptable {
        true => NO_AUTHENTICATION,
        false => NO_ACCEPTABLE_METHOD,
    };
    stream.write_all(&[VERSION, method]).await?;
    if !is_acceptable {
        return Ok(None);
    }
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION {
        return Ok(None);
    }
    let host = match kind {
        IPV4 => Ok(Host::from(IpAddr::from(Ipv4Addr::from_bits(
            stream.read_u32().await?,
        )))),
        IPV6 => Ok(Host::from(IpAddr::from(Ipv6Addr::from_bits(
            stream.read_u128().await?,
        )))),
        NAME => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            let name = str::from_utf8(&name).map_err(|_| InvalidHost);
            name.and_then(Host::parse)
        }
        _ => return Ok(Some(Err(Reply::AddressNotSupported))),
    };
    let port = stream.read_u16().await?;
    Ok(Some(match (command, host) {
        (CONNECT, Ok(host)) if port > 0 => Ok((host, port)),
        (CONNECT, _) => Err(Reply::GeneralFailure),
        _ => Err(Reply::CommandNotSupported),
    }))
}

/// Sends a reply. The reply does not contain the address that the proxy is bound to.
async fn send(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    let reply = [VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0];
    stream.write_all(&reply).await
}

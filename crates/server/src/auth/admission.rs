//! Decides which clients may open a WebSocket.

use std::{
    borrow::Cow,
    io,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant, SystemTime},
};

use hyper::header::HeaderMap;
use outpost_engine::TreeKind;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::{ClientCertificate, Identity, Principal, Rejection, socket_owner::SocketOwner};
use crate::{Peer, server::ServerState};

/// Timeout for a free descriptor to look a client up with.
const DESCRIPTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Descriptors become free without an event.
const DESCRIPTOR_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The user of a client that the kernel does not tell. No user has this id, see chown(2).
const UNKNOWN_USER: u32 = u32::MAX;

/// The client of an accepted socket.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    /// The server's own user, on a unix socket.
    Owner,
    /// Any client, on TCP.
    Tcp {
        /// The client's address.
        client: SocketAddr,
        /// The address that it connected to.
        server: SocketAddr,
        /// The connection uses TLS.
        encrypted: bool,
        /// The verified certificate of the client.
        certificate: Option<ClientCertificate>,
    },
}

impl Client {
    /// The peer that its socket is counted for before it is authenticated.
    pub(crate) fn peer(&self) -> Peer {
        match self {
            Client::Owner => Peer::Owner,
            Client::Tcp { client, .. } => Peer::from_address(client.ip()),
        }
    }

    /// Its address, for the audit log.
    pub(crate) fn address(&self) -> String {
        match self {
            Client::Owner => "unix".to_owned(),
            Client::Tcp { client, .. } => client.to_string(),
        }
    }

    /// Adds the certificate of the client, if it has sent one.
    pub(crate) fn with_certificate(mut self, socket: &TlsStream<TcpStream>) -> Self {
        let (_, tls) = socket.get_ref();
        let verified = tls.peer_certificates().and_then(<[_]>::first);
        if let Client::Tcp { certificate, .. } = &mut self {
            *certificate = verified.and_then(|der| ClientCertificate::parse(der));
        }
        self
    }
}

/// Why a client may not connect.
pub(crate) enum Refusal {
    Unauthenticated(Rejection, IpAddr),
    Forbidden(&'static str),
}

impl Refusal {
    /// The reason, as the client receives it.
    pub(crate) fn reason(&self) -> Cow<'static, str> {
        match self {
            Refusal::Unauthenticated(rejection, _) => rejection.to_string().into(),
            Refusal::Forbidden(reason) => reason.trim_end().into(),
        }
    }
}

/// Decides whether a client may connect. Returns the peer that its resources are counted for, and its identity
/// if it has a token or a certificate.
pub(crate) async fn admit(
    server: &ServerState,
    client: &Client,
    headers: &HeaderMap,
) -> Result<(Peer, Option<Identity>), Refusal> {
    let (client, own_end, certificate) = match client {
        Client::Owner => return Ok((Peer::Owner, None)),
        Client::Tcp {
            client,
            server,
            certificate,
            ..
        } => (*client, *server, certificate),
    };
    let auth = &server.settings.auth;
    if let Some(certificate) = certificate {
        let identity = auth.certified(certificate);
        return Ok((identity.principal.peer(), Some(identity)));
    }
    if auth.settings().needs_token() {
        let authenticated = auth.authenticate(headers, SystemTime::now());
        let identity =
            authenticated.map_err(|rejection| Refusal::Unauthenticated(rejection, client.ip()))?;
        return Ok((identity.principal.peer(), Some(identity)));
    }
    if !client.ip().to_canonical().is_loopback() {
        return Err(Refusal::Forbidden(
            "clients from other hosts need a token or a certificate\n",
        ));
    }
    let settings = auth.settings();
    // Otherwise a client could have more permissions by hiding its user.
    let may_be_unknown =
        settings.allow_local_users && !Principal::tells_local_users_apart(&settings.principals);
    let owner = match server.socket_owners.of_client(client, own_end) {
        Ok(owner) => owner,
        Err(_) if may_be_unknown => return Ok((Peer::User(UNKNOWN_USER), None)),
        Err(error) => {
            tracing::warn!(%client, %error, "connection rejected: its user is unknown");
            return Err(Refusal::Forbidden(
                "cannot find out which user connects; use a token or a unix socket, or start the \
                 server with --allow-local-users\n",
            ));
        }
    };
    if !settings.allow_local_users {
        let checked = check_local_user(server, client, owner).await;
        checked.map_err(Refusal::Forbidden)?;
    }
    let peer = if owner.uid == rustix::process::geteuid().as_raw() {
        Peer::from_address(client.ip())
    } else {
        Peer::User(owner.uid)
    };
    Ok((peer, None))
}

/// Checks that a client on loopback is a process of the server's user or of root, and none that this
/// server runs, which may be sandboxed.
async fn check_local_user(
    server: &ServerState,
    client: SocketAddr,
    owner: SocketOwner,
) -> Result<(), &'static str> {
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&owner.uid) {
        tracing::warn!(%client, uid = owner.uid, "connection rejected: peer is another user");
        return Err(
            "only the user of the server may connect without a token; start it with a token for \
             others, or with --allow-local-users\n",
        );
    }
    match is_own_process(server, owner).await {
        Ok(false) => Ok(()),
        Ok(true) => {
            tracing::warn!(%client, "connection rejected: peer is a process of this server");
            Err("a process that this server runs may not connect to it without a token\n")
        }
        Err(error) => {
            tracing::warn!(%client, %error, "connection rejected: its process is unknown");
            Err("cannot find out which process connects; retry, or use a token or a unix socket\n")
        }
    }
}

/// Whether a socket is that of a process that this server runs. With process trees that are no cgroups, the
/// kernel does not tell.
async fn is_own_process(server: &ServerState, owner: SocketOwner) -> io::Result<bool> {
    let engine = server.engine.clone();
    if engine.tree_kind() != TreeKind::Cgroup {
        return Ok(false);
    }
    let cgroup = owner.cgroup.ok_or(io::ErrorKind::Unsupported)?;
    let deadline = Instant::now() + DESCRIPTOR_TIMEOUT;
    loop {
        let engine = engine.clone();
        let found = tokio::task::spawn_blocking(move || engine.owns_cgroup(cgroup)).await?;
        match found {
            Err(error) if lacks_descriptors(&error) && Instant::now() < deadline => {
                tokio::time::sleep(DESCRIPTOR_POLL_INTERVAL).await;
            }
            found => return found,
        }
    }
}

/// Whether an operation failed for lack of a free descriptor.
fn lacks_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        errno,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

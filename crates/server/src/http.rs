//! HTTP on accepted sockets: health probes, rejections and the WebSocket upgrade.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderMap, HeaderValue},
    server::conn::http1,
    service::service_fn,
    upgrade::Upgraded,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use outpost_rpc::{Framing, ReadHalf, Role, WriteHalf, ws};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Peer, connection,
    connection_places::{ConnectionPlaces, ConnectionSlot},
    host_header,
    server::{ServerState, Transport},
};

type Reply = Response<Full<Bytes>>;

/// Size of the head of an HTTP request.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Accepted sockets whose HTTP request is not yet answered. They are no connections, so that probes are
/// answered while all connections are in use. The oldest one gives way to a new one.
pub(crate) struct HttpSockets {
    max: usize,
    /// By the order in which they were accepted. Cancelling closes the socket.
    open: Mutex<BTreeMap<u64, CancellationToken>>,
    accepted: AtomicU64,
}

impl HttpSockets {
    pub(crate) fn new(max: usize) -> Self {
        HttpSockets {
            max,
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
        }
    }

    /// Adds a socket. Returns its number, and a token that is cancelled when it has to give way.
    fn add(&self) -> (u64, CancellationToken) {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let closed = CancellationToken::new();
        let mut open = self.open.lock();
        open.insert(number, closed.clone());
        if open.len() > self.max
            && let Some((_, oldest)) = open.pop_first()
        {
            oldest.cancel();
        }
        (number, closed)
    }

    fn remove(&self, number: u64) {
        self.open.lock().remove(&number);
    }
}

/// Serves an accepted socket in its own task.
pub(crate) fn accept<S>(server: &Arc<ServerState>, socket: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let active = server.engine.activity().track();
    let service_server = Arc::clone(server);
    let service = service_fn(move |request| {
        let reply = respond(&service_server, peer, request);
        async move { Ok::<_, Infallible>(reply) }
    });
    let running = Arc::clone(server);
    let (number, gives_way) = server.http_sockets.add();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(MAX_HEAD_BYTES)
        .header_read_timeout(server.settings.request_head_timeout)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    server.tasks.spawn(async move {
        tokio::select! {
            served = connection => {
                if let Err(error) = served {
                    tracing::debug!(%error, "http connection failed");
                }
            }
            () = gives_way.cancelled() => {}
            () = running.ending.cancelled() => {}
        }
        running.http_sockets.remove(number);
        drop(active);
    });
}

fn respond(server: &Arc<ServerState>, peer: Peer, request: Request<Incoming>) -> Reply {
    // A web page can connect to loopback addresses, but cannot forge its Origin.
    let allowed = &server.settings.allowed_origins;
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    if !origins.all(|origin| allowed.iter().any(|allowed| origin == allowed)) {
        return text(
            StatusCode::FORBIDDEN,
            "requests with an Origin are refused unless it is one of allowed_origins\n",
        );
    }
    if matches!(request.uri().path(), "/readyz" | "/healthz") {
        return text(StatusCode::OK, "ok\n");
    }
    // A web page whose name was made to lead to loopback (DNS rebinding) sends that name.
    let is_tcp = matches!(peer, Peer::Address(_));
    if is_tcp && !host_header::is_allowed(&request, &server.settings.allowed_hosts) {
        return text(
            StatusCode::FORBIDDEN,
            "the Host must be localhost, a loopback address or one of allowed_hosts\n",
        );
    }
    if !wants_websocket(request.headers()) {
        return text(
            StatusCode::NOT_FOUND,
            "this is a websocket server; /readyz and /healthz answer too\n",
        );
    }
    if request.method() != Method::GET {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "a websocket is opened with GET\n",
        );
    }
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY);
    let version = request.headers().get(header::SEC_WEBSOCKET_VERSION);
    let (Some(key), Some(b"13")) = (key, version.map(HeaderValue::as_bytes)) else {
        let mut reply = text(
            StatusCode::UPGRADE_REQUIRED,
            "websocket version 13 is needed\n",
        );
        reply.headers_mut().insert(
            header::SEC_WEBSOCKET_VERSION,
            HeaderValue::from_static("13"),
        );
        return reply;
    };
    let accept = ws::accept_key(key.as_bytes());
    let protocol = first_protocol(request.headers());
    let Some(slot) = ConnectionPlaces::take(server, peer) else {
        let limit = server.settings.max_connections;
        tracing::warn!(limit, ?peer, "connection rejected: too many are open");
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n");
    };
    upgrade(server, peer, slot, request);
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = reply.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(protocol) = protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    reply
}

/// Turns the socket into a connection once the reply was sent.
fn upgrade(
    server: &Arc<ServerState>,
    peer: Peer,
    slot: ConnectionSlot,
    request: Request<Incoming>,
) {
    let running = Arc::clone(server);
    server.tasks.spawn(async move {
        let upgraded = tokio::select! {
            upgraded = hyper::upgrade::on(request) => upgraded,
            () = running.ending.cancelled() => return,
        };
        match upgraded
            .map_err(|error| error.to_string())
            .and_then(|upgraded| into_transport(upgraded, peer, slot))
        {
            Ok(transport) => {
                connection::run(running, transport).await;
            }
            Err(error) => tracing::debug!(error, "websocket upgrade failed"),
        }
    });
}

/// Extracts the socket from the upgraded connection, so that frames bypass hyper.
fn into_transport(
    upgraded: Upgraded,
    peer: Peer,
    slot: ConnectionSlot,
) -> Result<Transport, String> {
    let (read, write, early): (ReadHalf, WriteHalf, _) =
        match upgraded.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => {
                let (read, write) = parts.io.into_inner().into_split();
                (Box::new(read), Box::new(write), parts.read_buf)
            }
            Err(upgraded) => {
                let parts = upgraded
                    .downcast::<TokioIo<UnixStream>>()
                    .map_err(|_| "not the socket that was accepted".to_owned())?;
                let (read, write) = parts.io.into_inner().into_split();
                (Box::new(read), Box::new(write), parts.read_buf)
            }
        };
    Ok(Transport {
        read,
        write,
        framing: Framing::WebSocket(Role::Server),
        early,
        peer,
        slot: Some(slot),
    })
}

fn wants_websocket(headers: &HeaderMap) -> bool {
    let has = |name, wanted: &str| {
        headers.get_all(name).iter().any(|value| {
            value.to_str().is_ok_and(|value| {
                value
                    .split(',')
                    .any(|token| token.trim().eq_ignore_ascii_case(wanted))
            })
        })
    };
    has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket")
}

/// Returns the first offered subprotocol. Clients that offer some expect one of them in the
/// response; the name makes no difference here.
fn first_protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let first = offered.split(',').next()?.trim();
    HeaderValue::from_str(first)
        .ok()
        .filter(|first| !first.is_empty())
}

/// Builds a text reply that closes its connection, so that probes hold no slot.
fn text(status: StatusCode, body: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *reply.status_mut() = status;
    let close = HeaderValue::from_static("close");
    reply.headers_mut().insert(header::CONNECTION, close);
    reply
}

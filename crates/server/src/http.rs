//! HTTP on accepted sockets: health probes, rejections and the WebSocket upgrade.

use std::{convert::Infallible, io, sync::Arc};

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
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    Peer,
    auth::{BEARER_PROTOCOL, Client, Identity, Refusal, admit},
    connection,
    connection_limiter::{ConnectionLimiter, ConnectionPermit},
    host_header,
    server::{ServerState, Transport},
};

type Reply = Response<Full<Bytes>>;

/// Size of the head of an HTTP request.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Serves an accepted socket in its own task.
pub(crate) fn accept<S>(server: &Arc<ServerState>, socket: S, client: Client)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = client.peer();
    run(server, peer, serve(Arc::clone(server), socket, client));
}

/// Serves an accepted socket with TLS in its own task.
pub(crate) fn accept_tls(
    server: &Arc<ServerState>,
    acceptor: TlsAcceptor,
    socket: TcpStream,
    client: Client,
) {
    let running = Arc::clone(server);
    run(server, client.peer(), async move {
        let timeout = running.settings.request_head_timeout;
        match tokio::time::timeout(timeout, acceptor.accept(socket)).await {
            Ok(Ok(socket)) => {
                let client = client.with_certificate(&socket);
                serve(running, socket, client).await;
            }
            Ok(Err(error)) => {
                if is_refused_certificate(&error) {
                    running.record_refusal(&client, error.to_string().into());
                }
                tracing::debug!(%error, ?client, "TLS handshake failed");
            }
            Err(_) => tracing::debug!(?timeout, ?client, "TLS handshake timed out"),
        }
    });
}

/// Whether a TLS handshake failed because of the client's certificate.
fn is_refused_certificate(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(
        cause,
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    )
}

async fn serve<S>(server: Arc<ServerState>, socket: S, client: Client)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let timeout = server.settings.request_head_timeout;
    let service = service_fn(move |request| {
        let (server, client) = (Arc::clone(&server), client.clone());
        async move { Ok::<_, Infallible>(respond(&server, &client, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(MAX_HEAD_BYTES)
        .header_read_timeout(timeout)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "http connection failed");
    }
}

/// Runs the task of an accepted socket until its request is answered.
fn run(server: &Arc<ServerState>, peer: Peer, serve: impl Future<Output = ()> + Send + 'static) {
    let active = server.engine.activity().track();
    let running = Arc::clone(server);
    let (number, gives_way) = server.http_sockets.add(peer);
    server.tasks.spawn(async move {
        tokio::select! {
            () = serve => {}
            () = gives_way.cancelled() => {}
            () = running.ending.cancelled() => {}
        }
        running.http_sockets.remove(peer, number);
        drop(active);
    });
}

async fn respond(server: &Arc<ServerState>, client: &Client, request: Request<Incoming>) -> Reply {
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
    let is_plain = matches!(
        client,
        Client::Tcp {
            encrypted: false,
            ..
        }
    );
    if is_plain && !host_header::is_allowed(&request, &server.settings.allowed_hosts) {
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
    let protocol = echoed_protocol(request.headers());
    let admitted = admit(server, client, request.headers()).await;
    if let Err(refusal) = &admitted {
        server.record_refusal(client, refusal.reason());
    }
    let (peer, identity) = match admitted {
        Ok(admitted) => admitted,
        Err(Refusal::Unauthenticated(rejection, address)) => {
            let delay = server
                .settings
                .auth
                .record_failure(address, rejection, request.headers());
            tokio::time::sleep(delay).await;
            return text(StatusCode::UNAUTHORIZED, rejection.to_string());
        }
        Err(Refusal::Forbidden(reason)) => return text(StatusCode::FORBIDDEN, reason),
    };
    let principal = server.settings.auth.principal(peer, identity.as_ref());
    let max = principal.settings.limits.connections;
    let Some(permit) = ConnectionLimiter::acquire(server, peer, max) else {
        let limit = max.unwrap_or(server.settings.max_connections);
        tracing::warn!(
            limit,
            ?peer,
            principal = principal.name,
            "connection rejected: too many are open"
        );
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n");
    };
    let admitted = Admitted {
        peer,
        identity,
        address: client.address(),
        permit,
    };
    upgrade(server, admitted, request);
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

/// A client that may open a connection.
struct Admitted {
    peer: Peer,
    identity: Option<Identity>,
    address: String,
    permit: ConnectionPermit,
}

/// Turns the socket into a connection once the reply was sent.
fn upgrade(server: &Arc<ServerState>, client: Admitted, request: Request<Incoming>) {
    let running = Arc::clone(server);
    server.tasks.spawn(async move {
        let upgraded = tokio::select! {
            upgraded = hyper::upgrade::on(request) => upgraded,
            () = running.ending.cancelled() => return,
        };
        match upgraded
            .map_err(|error| error.to_string())
            .and_then(|upgraded| into_transport(upgraded, client))
        {
            Ok(transport) => {
                connection::run(running, transport).await;
            }
            Err(error) => tracing::debug!(error, "websocket upgrade failed"),
        }
    });
}

/// Extracts the socket from the upgraded connection, so that frames bypass hyper.
fn into_transport(upgraded: Upgraded, client: Admitted) -> Result<Transport, String> {
    let (read, write, early) = split(upgraded)?;
    Ok(Transport {
        read,
        write,
        framing: Framing::WebSocket(Role::Server),
        early,
        peer: client.peer,
        address: client.address,
        identity: client.identity,
        permit: Some(client.permit),
    })
}

fn split(upgraded: Upgraded) -> Result<(ReadHalf, WriteHalf, Bytes), String> {
    let upgraded = match upgraded.downcast::<TokioIo<TcpStream>>() {
        Ok(parts) => {
            let (read, write) = parts.io.into_inner().into_split();
            return Ok((Box::new(read), Box::new(write), parts.read_buf));
        }
        Err(upgraded) => upgraded,
    };
    let upgraded = match upgraded.downcast::<TokioIo<TlsStream<TcpStream>>>() {
        Ok(parts) => {
            let (read, write) = tokio::io::split(parts.io.into_inner());
            return Ok((Box::new(read), Box::new(write), parts.read_buf));
        }
        Err(upgraded) => upgraded,
    };
    let parts = upgraded
        .downcast::<TokioIo<UnixStream>>()
        .map_err(|_| "not the socket that was accepted".to_owned())?;
    let (read, write) = parts.io.into_inner().into_split();
    Ok((Box::new(read), Box::new(write), parts.read_buf))
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

/// Returns the first offered subprotocol that is no token. Clients that offer some expect one of them
/// in the response; the name makes no difference here.
fn echoed_protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let mut offered = offered.split(',').map(str::trim);
    let first = offered.find(|protocol| !protocol.starts_with(BEARER_PROTOCOL))?;
    HeaderValue::from_str(first)
        .ok()
        .filter(|first| !first.is_empty())
}

/// Builds a text reply that closes its connection, so that probes hold no permit.
fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let close = HeaderValue::from_static("close");
    reply.headers_mut().insert(header::CONNECTION, close);
    reply
}

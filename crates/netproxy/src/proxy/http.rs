//! HTTP requests in absolute form, and `CONNECT`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::client::conn::http1 as client;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use outpost_types::{DecisionScope, DecisionSource, NetworkProtocol, NetworkVerdict};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::headers::{self, Target};
use super::response::{self, Body};
use super::upstream::Route;
use super::{Metered, Shared, relay};
use crate::authorizer::{Authorized, Refusal, Request};
use crate::{Host, Reason};

/// The text of a response for a target that can't be reached.
const UPSTREAM_FAILURE: &str = "upstream failure";

/// A `CONNECT` that was accepted: relayed once its response is written.
struct Tunnel {
    upgrade: OnUpgrade,
    target: Metered<TcpStream>,
}

/// A connection of the program to the proxy.
struct Connection<'a> {
    shared: &'a Shared,
    client: SocketAddr,
    /// The address that the program connected to.
    local: Option<SocketAddr>,
    tunnel: Mutex<Option<Tunnel>>,
}

/// Serves one connection of the program.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    stream: TcpStream,
    client: SocketAddr,
    local: Option<SocketAddr>,
) {
    let limits = &shared.limits;
    let connection = Connection {
        shared,
        client,
        local,
        tunnel: Mutex::default(),
    };
    let service = service_fn(async |request| {
        let response = connection.respond(request).await;
        Ok::<_, Infallible>(response)
    });
    let served = server::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(limits.head_bytes)
        .header_read_timeout(limits.head_timeout)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection to a network proxy failed");
        return;
    }
    let tunnel = connection.tunnel.into_inner();
    if let Some(Tunnel {
        upgrade,
        mut target,
    }) = tunnel
        && let Ok(upgraded) = upgrade.await
    {
        let idle_timeout = limits.idle_timeout;
        match upgraded.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => {
                // Bytes that the program has sent before the response.
                if target.write_all(&parts.read_buf).await.is_ok() {
                    relay(parts.io.into_inner(), target, idle_timeout).await;
                }
            }
            Err(upgraded) => relay(TokioIo::new(upgraded), target, idle_timeout).await,
        }
    }
}

impl Connection<'_> {
    async fn respond(&self, incoming: hyper::Request<Incoming>) -> Response<Body> {
        if incoming.headers().contains_key("x-unix-socket") {
            return response::text(StatusCode::NOT_IMPLEMENTED, "unix sockets unsupported");
        }
        let method = incoming.method();
        let protocol = match *method {
            Method::CONNECT => NetworkProtocol::HttpsConnect,
            _ => NetworkProtocol::Http,
        };
        let target = Target::of(method, incoming.uri());
        let request = |host, port| Request {
            protocol,
            host,
            port,
            method: Some(incoming.method().to_string()),
            client: Some(self.client),
        };
        let (host, port) = match target {
            Target::Named(host, port) => (host, port),
            Target::Proxy => return self.refuse_own(incoming.method()),
            Target::Invalid(text) => return response::text(StatusCode::BAD_REQUEST, text),
        };
        if !headers::host_matches(incoming.headers(), &host, port) {
            let text = "Host header does not match request target";
            return response::text(StatusCode::BAD_REQUEST, text);
        }
        let request = request(host, port);
        let authorized = match self.shared.authorizer.authorize(&request).await {
            Ok(authorized) => authorized,
            Err(refusal) => return response::refused(&request, &refusal),
        };
        let answered = match protocol {
            NetworkProtocol::HttpsConnect => self.connect(&request, authorized, incoming).await,
            _ => self.forward(&request, authorized, incoming).await,
        };
        answered.unwrap_or_else(|error| {
            tracing::debug!(%error, host = %request.host, "target of a network proxy failed");
            response::text(StatusCode::BAD_GATEWAY, UPSTREAM_FAILURE)
        })
    }

    /// Refuses a request without a host, which is one to the proxy itself.
    fn refuse_own(&self, method: &Method) -> Response<Body> {
        let local = self.local.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
        let request = Request {
            protocol: NetworkProtocol::Http,
            host: Host::from(local.ip()),
            port: local.port(),
            method: Some(method.to_string()),
            client: Some(self.client),
        };
        let refusal = Refusal {
            verdict: NetworkVerdict::Deny,
            source: DecisionSource::BaselinePolicy,
            reason: Reason::NotAllowedLocal,
        };
        let authorizer = &self.shared.authorizer;
        authorizer.refuse(&request, DecisionScope::Domain, &refusal);
        response::refused(&request, &refusal)
    }

    /// Connects to the target of a `CONNECT`. The bytes are relayed after the response.
    async fn connect(
        &self,
        request: &Request,
        authorized: Authorized,
        incoming: hyper::Request<Incoming>,
    ) -> Result<Response<Body>, RelayError> {
        let target = self.shared.open_tunnel(request, authorized).await?;
        let upgrade = hyper::upgrade::on(incoming);
        *self.tunnel.lock() = Some(Tunnel { upgrade, target });
        Ok(response::empty())
    }

    /// Passes a plain request on, and returns the response of the target.
    async fn forward(
        &self,
        request: &Request,
        authorized: Authorized,
        mut incoming: hyper::Request<Incoming>,
    ) -> Result<Response<Body>, RelayError> {
        let shared = self.shared;
        let (route, stream) = shared.open(request, &authorized).await?;
        let uri = incoming.uri().clone();
        headers::remove_hop_by_hop(incoming.headers_mut());
        let host = uri.authority().map(|authority| {
            let text = authority.as_str();
            text.rsplit_once('@').map_or(text, |(_, host)| host)
        });
        let host = HeaderValue::try_from(host.unwrap_or_default())?;
        incoming.headers_mut().insert(header::HOST, host);
        match &route {
            Route::Direct => {
                let path = uri.path_and_query().map_or("/", |path| path.as_str());
                *incoming.uri_mut() = Uri::try_from(path)?;
            }
            Route::Proxy(proxy) => {
                if let Some(credentials) = proxy.authorization() {
                    let headers = incoming.headers_mut();
                    headers.insert(header::PROXY_AUTHORIZATION, credentials);
                }
            }
        }
        let idle = stream.idle();
        let idle_timeout = shared.limits.idle_timeout;
        let (mut sender, connection) = client::Builder::new()
            .max_buf_size(shared.limits.head_bytes)
            .handshake(TokioIo::new(stream))
            .await?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "connection of a network proxy to its target failed");
                },
                () = idle.reached(idle_timeout) => {}
            }
        }));
        let mut response = sender.send_request(incoming).await?;
        headers::remove_hop_by_hop(response.headers_mut());
        Ok(response.map(|body| {
            ResponseBody {
                body,
                _connection: connection,
            }
            .boxed()
        }))
    }
}

/// The reason why a target did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RelayError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Uri(#[from] hyper::http::uri::InvalidUri),
    #[error(transparent)]
    Header(#[from] header::InvalidHeaderValue),
}

/// The body of a target's response. Dropping it closes the connection.
struct ResponseBody {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

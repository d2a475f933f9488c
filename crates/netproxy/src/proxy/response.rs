//! Responses of the proxy itself.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use outpost_types::{DecisionSource, NetworkProtocol, NetworkVerdict};
use serde::Serialize;

use crate::Reason;
use crate::authorizer::{Refusal, Request};

/// The body of a response: the target's, or a text of the proxy.
pub(super) type Body = BoxBody<Bytes, hyper::Error>;

const X_PROXY_ERROR: HeaderName = HeaderName::from_static("x-proxy-error");

/// The body of the refusal of a plain HTTP request.
#[derive(Serialize)]
struct Blocked<'a> {
    status: &'a str,
    host: String,
    reason: &'a str,
    decision: NetworkVerdict,
    source: DecisionSource,
    protocol: NetworkProtocol,
    port: u16,
    message: &'a str,
}

pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

/// Returns the response to a request that is refused.
pub(super) fn refused(request: &Request, refusal: &Refusal) -> Response<Body> {
    let (error, message) = refusal.reason.response();
    let status = match refusal.reason {
        Reason::ProxyDisabled => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::FORBIDDEN,
    };
    let mut response = match request.protocol {
        NetworkProtocol::Http => {
            let blocked = Blocked {
                status: "blocked",
                host: request.host.to_string(),
                reason: refusal.reason.as_str(),
                decision: refusal.verdict,
                source: refusal.source,
                protocol: request.protocol,
                port: request.port,
                message: &message,
            };
            let json = serde_json::to_vec(&blocked).unwrap_or_default();
            with_type(status, "application/json", json.into())
        }
        _ => with_type(status, "text/plain", Bytes::from(message.into_owned())),
    };
    let headers = response.headers_mut();
    headers.insert(X_PROXY_ERROR, HeaderValue::from_static(error));
    response
}

pub(super) fn empty() -> Response<Body> {
    Response::new(boxed(Bytes::new()))
}

fn with_type(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(boxed(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn boxed(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed()
}

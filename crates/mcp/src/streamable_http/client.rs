//! Sends the SDK's HTTP requests through an executor.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderName, HeaderValue, Uri};
use outpost_client::{Error, Executor, HttpRequest, HttpResponse};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcRequest,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};

use crate::{EndReason, ServerDiagnostics, diagnostics::preview};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// Maximum size of an error response.
const ERROR_BODY_BYTES: usize = 64 * 1024;

/// Maximum number of requests for one message, redirects included.
const MAX_REQUESTS: usize = 6;

type ClientError = StreamableHttpError<Error>;
type EventStream = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// An HTTP client whose requests are sent by an executor.
#[derive(Clone)]
pub(super) struct ExecutorHttpClient {
    pub(super) executor: Arc<dyn Executor>,
    /// Receives the end reason if the executor is lost.
    pub(super) diagnostics: Arc<ServerDiagnostics>,
    pub(super) message_bytes: usize,
}

impl ExecutorHttpClient {
    /// Sends the request that `make` builds for a URL, and follows redirects.
    async fn send(
        &self,
        uri: &str,
        make: impl Fn(&str) -> HttpRequest,
        session: Option<&str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<HttpResponse, ClientError> {
        let mut uri = uri.to_owned();
        for _ in 0..MAX_REQUESTS {
            let mut request = make(&uri).without_redirects();
            if let Some(session) = session {
                request = request.header(SESSION, session);
            }
            if let Some(token) = &token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            for (name, value) in &headers {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                request = request.header(name.as_str(), value);
            }
            let response = self.executor.http(request).await;
            let response = response.map_err(|error| self.client_error(error))?;
            let location = response.header("location");
            match redirect_target(&uri, response.status, location) {
                Some(next) => uri = next,
                None => return Ok(response),
            }
        }
        let message = "too many redirects".into();
        Err(StreamableHttpError::UnexpectedServerResponse(message))
    }

    /// Converts an error. A lost executor ends the transport.
    fn client_error(&self, error: Error) -> ClientError {
        if let Error::Disconnected { .. } = &error {
            let reason = error.to_string().into();
            self.diagnostics.set_end_reason(EndReason::Lost { reason });
        }
        StreamableHttpError::Client(error)
    }

    fn events(&self, response: HttpResponse) -> EventStream {
        // The SSE parser buffers an event without a limit.
        let (mut meter, limit) = (EventMeter::default(), self.message_bytes);
        let events = response.body.map(move |chunk| meter.check(chunk?, limit));
        Box::pin(SseStream::from_bytes_stream(events))
    }
}

impl StreamableHttpClient for ExecutorHttpClient {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let body = serde_json::to_vec(&message)?;
        let make = |uri: &str| {
            HttpRequest::post(uri)
                .header("accept", BOTH)
                .header("content-type", JSON)
                .body(body.clone())
        };
        let session = session_id.as_deref();
        let response = self
            .send(&uri, make, session, auth_header, custom_headers)
            .await?;
        let new_session = response.header(SESSION).map(str::to_owned);
        match (response.status, media_type(&response)) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..=299, EVENTS) => {
                let events = self.events(response);
                Ok(StreamableHttpPostResponse::Sse(events, new_session))
            }
            (200..=299, JSON) => {
                let body = response.body.bytes(self.message_bytes).await;
                let body = body.map_err(|error| self.client_error(error))?;
                match serde_json::from_slice(&body) {
                    Ok(response) => Ok(StreamableHttpPostResponse::Json(response, new_session)),
                    // Notifications expect no response.
                    Err(_) if !is_request(&message) => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(error.into()),
                }
            }
            (200..=299, _) if !is_request(&message) => Ok(StreamableHttpPostResponse::Accepted),
            (200..=299, other) => Err(unexpected_type(other)),
            (status, media_type) => {
                let body = response.body.bytes(ERROR_BODY_BYTES).await;
                let body = body.unwrap_or_default();
                let is_json = media_type == JSON;
                error_response(status, is_json, &body, &message, session.is_some())
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), ClientError> {
        let make = |uri: &str| HttpRequest::new("DELETE", uri);
        let session = Some(&*session_id);
        let response = self
            .send(&uri, make, session, auth_header, custom_headers)
            .await?;
        match response.status {
            // Not every server supports deleting sessions.
            200..=299 | 404 | 405 => Ok(()),
            status => Err(unexpected_status(status, b"")),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, ClientError> {
        let make = |uri: &str| {
            let request = HttpRequest::get(uri).header("accept", EVENTS);
            match &last_event_id {
                Some(last) => request.header(LAST_EVENT, last),
                None => request,
            }
        };
        let session = session_id.as_deref();
        let response = self
            .send(&uri, make, session, auth_header, custom_headers)
            .await?;
        match (response.status, media_type(&response)) {
            (200..=299, EVENTS) => Ok(self.events(response)),
            (200..=299, other) => Err(unexpected_type(other)),
            (405, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (status, _) => Err(unexpected_status(status, b"")),
        }
    }
}

/// Returns the media type of a response, without parameters.
fn media_type(response: &HttpResponse) -> &'static str {
    let header = response.header("content-type").unwrap_or_default();
    let media_type = header.split(';').next().unwrap_or_default().trim();
    match media_type {
        _ if media_type.eq_ignore_ascii_case(JSON) => JSON,
        _ if media_type.eq_ignore_ascii_case(EVENTS) => EVENTS,
        _ => "",
    }
}

fn is_request(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(_))
}

/// Handles an error status. A JSON-RPC error in the body is the response. Any error
/// status for `server/discover` means that the server has an older MCP version.
fn error_response(
    status: u16,
    is_json: bool,
    body: &[u8],
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<StreamableHttpPostResponse, ClientError> {
    let error = match serde_json::from_slice(body) {
        Ok(JsonRpcMessage::Error(error)) if is_json => Some(error),
        Ok::<ServerJsonRpcMessage, _>(_) | Err(_) => None,
    };
    let is_auth_error = matches!(status, 401 | 403);
    let discovery = match message {
        JsonRpcMessage::Request(JsonRpcRequest {
            id,
            request: ClientRequest::DiscoverRequest(_),
            ..
        }) => Some(id.clone()),
        _ => None,
    };
    if let Some(id) = discovery.filter(|_| !in_session && !is_auth_error && status < 500) {
        let error = match error {
            Some(error) => error.error,
            None => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        let response = JsonRpcMessage::error(error, Some(id));
        return Ok(StreamableHttpPostResponse::Json(response, None));
    }
    match error.filter(|_| !is_auth_error) {
        Some(error) => {
            let response = JsonRpcMessage::Error(error);
            Ok(StreamableHttpPostResponse::Json(response, None))
        }
        None => Err(unexpected_status(status, body)),
    }
}

fn unexpected_type(media_type: &str) -> ClientError {
    let media_type = Some(media_type.to_owned()).filter(|name| !name.is_empty());
    StreamableHttpError::UnexpectedContentType(media_type)
}

fn unexpected_status(status: u16, body: &[u8]) -> ClientError {
    let message = match (status, body) {
        (401, _) => "HTTP 401: authentication required".to_owned(),
        (300..=399, _) => {
            format!("HTTP {status}: redirects to another origin are not followed")
        }
        (_, []) => format!("HTTP {status}"),
        (_, body) => format!("HTTP {status}: {}", preview(body)),
    };
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

/// Returns the URL to request instead, or `None` to use the response as it is.
///
/// Only 307 and 308 are followed, because they repeat the request unchanged, and only
/// within the origin: another one must not receive the tokens and headers.
fn redirect_target(requested: &str, status: u16, location: Option<&str>) -> Option<String> {
    if !matches!(status, 307 | 308) {
        return None;
    }
    let requested: Uri = requested.parse().ok()?;
    let (scheme, authority) = (requested.scheme_str()?, requested.authority()?);
    let location = location?;
    let location = match location {
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => location.to_owned(),
    };
    let target: Uri = location.parse().ok()?;
    (origin(&requested)? == origin(&target)?).then_some(location)
}

fn origin(uri: &Uri) -> Option<(String, String, u16)> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let port = uri.port_u16().unwrap_or(port);
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

/// Errors of an event stream.
#[derive(Debug, thiserror::Error)]
enum EventsError {
    #[error("a server-sent event exceeds {limit} bytes")]
    TooLong { limit: usize },
    #[error(transparent)]
    Body(#[from] Error),
}

/// Measures events. An event ends with an empty line.
#[derive(Default)]
struct EventMeter {
    event: usize,
    line: usize,
    /// The last byte was a CR, which may be followed by an LF of the same line end.
    after_cr: bool,
}

impl EventMeter {
    /// Adds received bytes, and returns them unless an event exceeds the limit.
    fn check(&mut self, chunk: Bytes, limit: usize) -> Result<Bytes, EventsError> {
        for byte in &chunk {
            let completes_crlf = self.after_cr && *byte == b'\n';
            self.after_cr = *byte == b'\r';
            match byte {
                _ if completes_crlf => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            if self.event > limit {
                return Err(EventsError::TooLong { limit });
            }
        }
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_only_within_the_origin() {
        let from = |location| redirect_target("https://example.com/mcp", 307, Some(location));
        for (location, target) in [
            ("/mcp/", "https://example.com/mcp/"),
            ("//EXAMPLE.com/x", "https://EXAMPLE.com/x"),
            ("https://example.com:443/x?y", "https://example.com:443/x?y"),
        ] {
            assert_eq!(from(location).as_deref(), Some(target));
        }
        for location in [
            "http://example.com/mcp",
            "https://example.com:8443/mcp",
            "https://evil.example/mcp",
            "https://example.com@evil.example/mcp",
            "//evil.example/mcp",
            "mcp/",
            "",
        ] {
            let followed = from(location);
            assert!(followed.is_none(), "{location}: {followed:?}");
        }
    }

    #[test]
    fn follows_only_statuses_that_repeat_the_request() {
        for status in [200, 301, 302, 303, 404] {
            assert_eq!(redirect_target("http://a/mcp", status, Some("/x")), None);
        }
        assert_eq!(redirect_target("http://a/mcp", 308, None), None);
    }

    fn fits(limit: usize, chunks: &[&'static str]) -> bool {
        let mut meter = EventMeter::default();
        let mut chunks = chunks.iter().map(|chunk| Bytes::from(*chunk));
        chunks.all(|chunk| meter.check(chunk, limit).is_ok())
    }

    #[test]
    fn measures_events_across_chunks() {
        assert!(fits(10, &["data: abcd", "\n\ndata: efgh\n\n"]));
        assert!(!fits(10, &["data: ab", "cde\n\n"]));
        assert!(!fits(10, &["data: a\n", "data: b\n\n"]));
        assert!(!fits(10, &["data: a\r\n", "data: b\r\n\r\n"]));
        assert!(fits(10, &["data: abc\r\n\r", "\ndata: abc\r\n\r\n"]));
    }
}

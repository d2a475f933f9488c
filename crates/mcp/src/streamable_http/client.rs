//! Sends the SDK's HTTP requests through an executor.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use futures_core::Stream;
use http::{HeaderName, HeaderValue};
use outpost_client::{Error, Executor, HttpRequest, HttpResponse};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};

use super::{event_limit::BoundedEvents, redirect};
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
    pub(super) diagnostics: ServerDiagnostics,
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
            match redirect::next(&uri, response.status, location) {
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
        let events = BoundedEvents::new(response.body, self.message_bytes);
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
            (200..=299, other) => {
                let other = Some(other.to_owned()).filter(|other| !other.is_empty());
                Err(StreamableHttpError::UnexpectedContentType(other))
            }
            (status, media_type) => {
                let is_json = media_type == JSON;
                let body = response
                    .body
                    .bytes(ERROR_BODY_BYTES)
                    .await
                    .unwrap_or_default();
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
            (200..=299, other) => {
                let other = Some(other.to_owned()).filter(|other| !other.is_empty());
                Err(StreamableHttpError::UnexpectedContentType(other))
            }
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
    if let Some(id) =
        discovery_id(message).filter(|_| !in_session && !is_auth_error && status < 500)
    {
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

/// Returns the request id of a `server/discover` request.
fn discovery_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(request.id.clone())
        }
        _ => None,
    }
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

//! The SDK's requests, made by a place.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use futures_core::Stream;
use http::{HeaderName, HeaderValue};
use outpost_client::{Error, HttpRequest, HttpResponse, Place};
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

use super::{events::Events, redirect};
use crate::account::{Account, Fault, excerpt};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// How often a server may point elsewhere, plus one.
const REDIRECTS: usize = 6;

type Failed = StreamableHttpError<Error>;
type EventStream = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// Speaks HTTP from where a place is, and from nowhere else.
#[derive(Clone)]
pub(super) struct Web {
    pub(super) place: Arc<dyn Place>,
    /// Where it is told that the place is lost.
    pub(super) account: Account,
    pub(super) message_bytes: usize,
}

impl Web {
    /// Asks what is made for an address, and where the server points to instead.
    async fn ask(
        &self,
        uri: &str,
        make: impl Fn(&str) -> HttpRequest,
        session: Option<&str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<HttpResponse, Failed> {
        let mut uri = uri.to_owned();
        for _ in 0..REDIRECTS {
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
            let response = self.place.http(request).await;
            let response = response.map_err(|error| self.failed(error))?;
            let location = response.header("location");
            match redirect::next(&uri, response.status, location) {
                Some(next) => uri = next,
                None => return Ok(response),
            }
        }
        let words = "it points elsewhere again and again";
        Err(StreamableHttpError::UnexpectedServerResponse(words.into()))
    }

    /// A place that is lost stays so, and who looks after the server is told.
    fn failed(&self, error: Error) -> Failed {
        if let Error::Disconnected { .. } = &error {
            let reason = error.to_string().into();
            self.account.end(Fault::Lost { reason });
        }
        StreamableHttpError::Client(error)
    }

    fn events(&self, response: HttpResponse) -> EventStream {
        let events = Events::new(response.body, self.message_bytes);
        Box::pin(SseStream::from_bytes_stream(events))
    }
}

impl StreamableHttpClient for Web {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?;
        let make = |uri: &str| {
            HttpRequest::post(uri)
                .header("accept", BOTH)
                .header("content-type", JSON)
                .body(body.clone())
        };
        let session = session_id.as_deref();
        let response = self
            .ask(&uri, make, session, auth_header, custom_headers)
            .await?;
        let opened = response.header(SESSION).map(str::to_owned);
        match (response.status, media_type(&response)) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..=299, EVENTS) => {
                let events = self.events(response);
                Ok(StreamableHttpPostResponse::Sse(events, opened))
            }
            (200..=299, JSON) => {
                let body = response.body.bytes(self.message_bytes).await;
                let body = body.map_err(|error| self.failed(error))?;
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, opened)),
                    // Whoever expects no answer needn't understand it.
                    Err(_) if !is_request(&message) => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(error.into()),
                }
            }
            (200..=299, _) if !is_request(&message) => Ok(StreamableHttpPostResponse::Accepted),
            (200..=299, other) => {
                let other = Some(other.to_owned()).filter(|other| !other.is_empty());
                Err(StreamableHttpError::UnexpectedContentType(other))
            }
            (status, kind) => {
                let is_json = kind == JSON;
                let body = response.body.bytes(REFUSAL_BYTES).await.unwrap_or_default();
                refusal(status, is_json, &body, &message, session.is_some())
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let make = |uri: &str| HttpRequest::new("DELETE", uri);
        let session = Some(&*session_id);
        let response = self
            .ask(&uri, make, session, auth_header, custom_headers)
            .await?;
        match response.status {
            // Not every server lets its sessions be ended.
            200..=299 | 404 | 405 => Ok(()),
            status => Err(unexpected(status, b"")),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, Failed> {
        let make = |uri: &str| {
            let request = HttpRequest::get(uri).header("accept", EVENTS);
            match &last_event_id {
                Some(last) => request.header(LAST_EVENT, last),
                None => request,
            }
        };
        let session = session_id.as_deref();
        let response = self
            .ask(&uri, make, session, auth_header, custom_headers)
            .await?;
        match (response.status, media_type(&response)) {
            (200..=299, EVENTS) => Ok(self.events(response)),
            (200..=299, other) => {
                let other = Some(other.to_owned()).filter(|other| !other.is_empty());
                Err(StreamableHttpError::UnexpectedContentType(other))
            }
            (405, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (status, _) => Err(unexpected(status, b"")),
        }
    }
}

/// What a body is, without its parameters.
fn media_type(response: &HttpResponse) -> &'static str {
    let told = response.header("content-type").unwrap_or_default();
    let kind = told.split(';').next().unwrap_or_default().trim();
    match kind {
        _ if kind.eq_ignore_ascii_case(JSON) => JSON,
        _ if kind.eq_ignore_ascii_case(EVENTS) => EVENTS,
        _ => "",
    }
}

fn is_request(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(_))
}

/// What to make of a status that says no. Errors of the protocol are answers,
/// and an older server says in any words that it doesn't know a newer question.
fn refusal(
    status: u16,
    is_json: bool,
    body: &[u8],
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<StreamableHttpPostResponse, Failed> {
    let told = match serde_json::from_slice(body) {
        Ok(JsonRpcMessage::Error(error)) if is_json => Some(error),
        Ok::<ServerJsonRpcMessage, _>(_) | Err(_) => None,
    };
    let is_ours = matches!(status, 401 | 403);
    if let Some(id) = discovery(message).filter(|_| !in_session && !is_ours && status < 500) {
        let error = match told {
            Some(told) => told.error,
            None => ErrorData::invalid_request(format!("HTTP status {status}"), None),
        };
        let answer = JsonRpcMessage::error(error, Some(id));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match told.filter(|_| !is_ours) {
        Some(told) => {
            let answer = JsonRpcMessage::Error(told);
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        None => Err(unexpected(status, body)),
    }
}

fn discovery(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(request.id.clone())
        }
        _ => None,
    }
}

fn unexpected(status: u16, body: &[u8]) -> Failed {
    let words = match (status, body) {
        (401, _) => "HTTP status 401: it wants to know who asks".to_owned(),
        (300..=399, _) => {
            format!("HTTP status {status}: it points to another place, where nothing is sent")
        }
        (_, []) => format!("HTTP status {status}"),
        (_, body) => format!("HTTP status {status}: {}", excerpt(body)),
    };
    StreamableHttpError::UnexpectedServerResponse(words.into())
}

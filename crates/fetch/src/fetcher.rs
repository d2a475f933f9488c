//! The HTTP client.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Client, Method, Url,
    header::{CONTENT_LENGTH, HeaderMap, LOCATION},
    redirect::Policy,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};

use crate::{
    Cause, FetchError, Request, Response,
    redirect::{MAX_REDIRECTS, next_request},
    request::{Header, host},
};

/// The time for which an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// The number of idle connections per host.
const MAX_IDLE: usize = 8;

/// Makes requests. Trusts the certificates of the system. Clones share their idle connections.
///
/// The client is set up with the first request, because reading the system's certificates takes a
/// while and most sessions make no requests. It uses the system's proxies at that time.
#[derive(Clone, Debug, Default)]
pub struct Fetcher {
    client: Arc<OnceCell<Client>>,
}

impl Fetcher {
    /// Makes a request, and waits for the head of its response. Dropping the future or the response
    /// closes the exchange.
    pub async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        // A timeout beyond the range of `Instant` is no timeout.
        let limit = request
            .timeout
            .and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        let exchange = self.exchange(request);
        let response = match limit {
            None => exchange.await?,
            Some((deadline, timeout)) => timeout_at(deadline, exchange)
                .await
                .map_err(|_| FetchError::TimedOut(timeout))??,
        };
        Ok(Response::new(response, limit))
    }

    async fn exchange(&self, request: Request) -> Result<reqwest::Response, FetchError> {
        let client = self.client().await?;
        let Request {
            mut method,
            mut url,
            mut headers,
            mut body,
            follow_redirects,
            observer,
            ..
        } = request;
        for _ in 0..=MAX_REDIRECTS {
            let response = send(client, &method, &url, &headers, &body).await?;
            if !follow_redirects {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION);
            let location = location.map(|location| location.as_bytes());
            let Some(next) = next_request(response.status(), location, &method, &url)? else {
                return Ok(response);
            };
            headers.retain(|header| next.takes(header));
            if !next.keeps_body {
                body = Bytes::new();
            }
            method = next.method;
            url = next.url;
            if let Some(observer) = &observer {
                observer.redirected(method.as_str(), &host(&url));
            }
        }
        Err(FetchError::TooManyRedirects(MAX_REDIRECTS))
    }

    async fn client(&self) -> Result<&Client, FetchError> {
        let made = self.client.get_or_try_init(async || {
            let made = tokio::task::spawn_blocking(build).await;
            made.map_err(io::Error::other)?
        });
        made.await.map_err(FetchError::Unprepared)
    }
}

fn build() -> io::Result<Client> {
    Client::builder()
        .tls_backend_preconfigured(system_tls()?)
        .redirect(Policy::none())
        .referer(false)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MAX_IDLE)
        .build()
        .map_err(|error| io::Error::other(error.without_url()))
}

/// Trusts the certificates of the system. It is no error if there are none, because requests without
/// TLS still work. The crypto provider is passed explicitly, so that the program's default stays
/// unchanged.
fn system_tls() -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn send(
    client: &Client,
    method: &Method,
    url: &Url,
    headers: &[Header],
    body: &Bytes,
) -> Result<reqwest::Response, FetchError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for header in headers {
        // `Request::body` has checked it, and the HTTP client writes its own.
        if header.name != CONTENT_LENGTH {
            map.append(header.name.clone(), header.value.clone());
        }
    }
    let mut request = client.request(method.clone(), url.clone()).headers(map);
    if !body.is_empty() {
        request = request.body(body.clone());
    }
    request.send().await.map_err(|error| {
        let host = host(url);
        let connecting = error.is_connect();
        let cause = Cause::of(error);
        if connecting {
            FetchError::Connect { host, cause }
        } else {
            FetchError::Exchange { host, cause }
        }
    })
}

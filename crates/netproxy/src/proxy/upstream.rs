//! Connections to public targets through the HTTP proxy of the server's own `http_proxy` variables.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use outpost_types::NetworkProtocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Metered, Shared};
use crate::authorizer::{Authorized, Request};
use crate::{Host, Rule, address, dialer};

/// The longest response of an upstream proxy to `CONNECT`.
const MAX_RESPONSE: usize = 8 * 1024;

/// The proxies of the server's own `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` variables.
/// Only proxies with the scheme `http` are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Upstream {
    http: Option<UpstreamProxy>,
    https: Option<UpstreamProxy>,
    /// Hosts that are reached directly.
    exceptions: Vec<Exception>,
}

/// An HTTP proxy named in the server's own `http_proxy` variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpstreamProxy {
    host: Host,
    port: u16,
    /// User and password, as the header has them.
    credentials: Option<String>,
}

/// A host of `no_proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// A domain with its subdomains.
    Domain(String),
    /// An address or a network.
    Addresses(Rule),
}

/// The way to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Direct,
    Proxy(UpstreamProxy),
}

impl Upstream {
    /// Reads the variables of this program.
    pub(super) fn of_this_program() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads variables as curl does. The lower-case name of a variable takes precedence.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| variable(name));
            values.find(|value| !value.is_empty())
        };
        let proxy = |names: &[&str]| first(names).and_then(|url| UpstreamProxy::parse(&url));
        let exceptions = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        Self {
            http: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: exceptions.split(',').filter_map(Exception::parse).collect(),
        }
    }

    fn route(&self, request: &Request, addresses: &[SocketAddr]) -> Route {
        let proxy = match (request.protocol, request.port) {
            (NetworkProtocol::Http, _) => &self.http,
            _ => &self.https,
        };
        let is_public = addresses.iter().all(|one| address::is_public(one.ip()));
        let is_exception = self.exceptions.iter().any(|one| one.covers(&request.host));
        match proxy {
            Some(proxy) if is_public && !is_exception => Route::Proxy(proxy.clone()),
            _ => Route::Direct,
        }
    }
}

impl UpstreamProxy {
    fn parse(url: &str) -> Option<Self> {
        let url = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let uri: Uri = url.parse().ok()?;
        if uri.scheme_str() != Some("http") {
            tracing::warn!("upstream proxy is not used: its scheme is not http");
            return None;
        }
        let authority = uri.authority()?;
        let credentials = authority.as_str().rsplit_once('@');
        Some(Self {
            host: Host::parse(authority.host()).ok()?,
            port: authority.port_u16().unwrap_or(80),
            credentials: credentials.map(|(user, _)| STANDARD.encode(percent_decoded(user))),
        })
    }

    /// Returns the header with its credentials.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let credentials = self.credentials.as_ref()?;
        HeaderValue::try_from(format!("Basic {credentials}")).ok()
    }

    /// Asks for a tunnel to a target. The name is passed on, not an address: the proxy may know other
    /// addresses than this host, or accept names only.
    async fn open_tunnel(&self, stream: &mut TcpStream, request: &Request) -> io::Result<()> {
        let host = match &request.host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            host => host.to_string(),
        };
        let target = format!("{host}:{}", request.port);
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(credentials) = &self.credentials {
            head.push_str(&format!("Proxy-Authorization: Basic {credentials}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut response = Vec::new();
        // Byte by byte: what follows belongs to the target.
        while !response.ends_with(b"\r\n\r\n") {
            if response.len() == MAX_RESPONSE {
                return Err(io::Error::other(
                    "the upstream proxy's response is too long",
                ));
            }
            response.push(stream.read_u8().await?);
        }
        let status = response.split(|byte| *byte == b' ').nth(1);
        match status {
            Some(b"200") => Ok(()),
            _ => Err(io::Error::other(
                "the upstream proxy refused the connection",
            )),
        }
    }
}

impl Exception {
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" => None,
            "*" => Some(Exception::All),
            text => Some(match text.parse::<Rule>() {
                Ok(rule) if text.parse::<IpAddr>().is_ok() || text.contains('/') => {
                    Exception::Addresses(rule)
                }
                _ => Exception::Domain(text.trim_start_matches('.').to_ascii_lowercase()),
            }),
        }
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Exception::All, _) => true,
            (Exception::Addresses(rule), host) => rule.matches(host, 1),
            (Exception::Domain(domain), Host::Name(name)) => {
                let parent = name.strip_suffix(domain.as_str());
                parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
            }
            (Exception::Domain(_), Host::Address(_)) => false,
        }
    }
}

impl Shared {
    /// Connects to a target that is allowed, or to the proxy on the way to it.
    pub(super) async fn open(
        &self,
        request: &Request,
        authorized: &Authorized,
    ) -> io::Result<(Route, Metered<TcpStream>)> {
        let route = self.upstream.route(request, &authorized.addresses);
        let stream = match &route {
            Route::Direct => dialer::connect(&*self.dialer, &authorized.addresses).await?,
            Route::Proxy(proxy) => {
                let found = match &proxy.host {
                    Host::Address(address) => vec![*address],
                    Host::Name(name) => self.dialer.resolve(name).await?,
                };
                let found = found.into_iter();
                let addresses = found.map(|address| SocketAddr::new(address, proxy.port));
                dialer::connect(&*self.dialer, &addresses.collect::<Vec<_>>()).await?
            }
        };
        let record = Some(Arc::clone(&authorized.record));
        Ok((route, self.metered(stream, record)))
    }

    /// Opens a connection on which bytes can be relayed to a target that is allowed.
    pub(super) async fn open_tunnel(
        &self,
        request: &Request,
        authorized: Authorized,
    ) -> io::Result<Metered<TcpStream>> {
        let (route, mut stream) = self.open(request, &authorized).await?;
        if let Route::Proxy(proxy) = route {
            let opened = proxy.open_tunnel(stream.get_mut(), request);
            let opened = timeout(self.limits.head_timeout, opened).await;
            opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        }
        Ok(stream)
    }
}

/// Decodes the user and password of a URL.
fn percent_decoded(text: &str) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::new(), text);
    while let Some((plain, escaped)) = rest.split_once('%') {
        decoded.extend(plain.as_bytes());
        let byte = escaped
            .get(..2)
            .map(|digits| u8::from_str_radix(digits, 16));
        rest = match byte {
            Some(Ok(byte)) => {
                decoded.push(byte);
                &escaped[2..]
            }
            _ => {
                decoded.push(b'%');
                escaped
            }
        };
    }
    decoded.extend(rest.as_bytes());
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(variables: &[(&str, &str)]) -> Upstream {
        Upstream::from_variables(|name| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn route(upstream: &Upstream, protocol: NetworkProtocol, host: &str, address: &str) -> Route {
        let request = Request {
            protocol,
            host: Host::parse(host).expect("a host"),
            port: 443,
            method: None,
            client: None,
        };
        let address = SocketAddr::new(address.parse().expect("an address"), 443);
        upstream.route(&request, &[address])
    }

    #[test]
    fn public_targets_go_through_the_proxy_of_their_scheme() {
        use NetworkProtocol::{Http, HttpsConnect, Socks5Tcp};
        let upstream = upstream(&[
            ("HTTP_PROXY", "http://one.test:8080"),
            ("https_proxy", "u%40x:p@two.test"),
            ("HTTPS_PROXY", "http://three.test"),
            ("NO_PROXY", "direct.test, .sub.test,9.9.9.0/24,1.2.3.4"),
        ]);
        let via =
            |protocol, host: &str, address: &str| match route(&upstream, protocol, host, address) {
                Route::Direct => "direct".to_owned(),
                Route::Proxy(proxy) => format!("{}:{}", proxy.host, proxy.port),
            };
        assert_eq!(via(Http, "a.test", "8.8.8.8"), "one.test:8080");
        assert_eq!(via(HttpsConnect, "a.test", "8.8.8.8"), "two.test:80");
        assert_eq!(via(Socks5Tcp, "a.test", "8.8.8.8"), "two.test:80");
        for (host, address) in [
            ("a.test", "10.0.0.1"),
            ("direct.test", "8.8.8.8"),
            ("x.direct.test", "8.8.8.8"),
            ("a.sub.test", "8.8.8.8"),
            ("9.9.9.9", "9.9.9.9"),
            ("1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(via(HttpsConnect, host, address), "direct", "{host}");
        }
        assert_eq!(
            via(HttpsConnect, "notdirect.test", "8.8.8.8"),
            "two.test:80"
        );
        let https = upstream.https.expect("a proxy");
        let authorization = https.authorization().expect("credentials");
        assert_eq!(authorization, format!("Basic {}", STANDARD.encode("u@x:p")));
    }

    #[test]
    fn other_proxies_are_not_used() {
        for url in ["socks5://a.test", "https://a.test", "http://", ":", ""] {
            assert_eq!(
                upstream(&[("http_proxy", url)]),
                Upstream::default(),
                "{url}"
            );
        }
        let all = upstream(&[("ALL_PROXY", "a.test:1"), ("no_proxy", "*")]);
        assert!(all.http.is_some() && all.https.is_some());
        let route = route(&all, NetworkProtocol::Http, "a.test", "8.8.8.8");
        assert_eq!(route, Route::Direct);
    }
}

//! A proxy between a program and servers on the loopback address.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use outpost_netproxy::{
    Decider, Decision, Dial, DialFuture, Limits, Listeners, Parts, Proxy, ProxyAddress, ProxyConfig,
};
use outpost_types::{NetworkDecision, NetworkTarget};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Gives each name of a server a public address, and connects to the server instead.
#[derive(Default)]
pub(crate) struct TestDialer {
    names: HashMap<String, IpAddr>,
    servers: HashMap<IpAddr, u16>,
}

impl TestDialer {
    /// Adds a server on this port of the loopback address.
    pub(crate) fn server(mut self, name: &str, port: u16) -> Self {
        let number = u8::try_from(self.names.len() + 1).expect("a few servers");
        let address = IpAddr::from([8, 8, 8, number]);
        self.names.insert(name.to_owned(), address);
        self.servers.insert(address, port);
        self
    }

    /// Adds a name with this address.
    pub(crate) fn name(mut self, name: &str, address: &str) -> Self {
        let address = address.parse().expect("an address");
        self.names.insert(name.to_owned(), address);
        self
    }
}

impl Dial for TestDialer {
    fn resolve<'a>(&'a self, name: &'a str) -> DialFuture<'a, Vec<IpAddr>> {
        Box::pin(async { Ok(self.names.get(name).copied().into_iter().collect()) })
    }

    fn connect(&self, address: SocketAddr) -> DialFuture<'_, TcpStream> {
        Box::pin(async move {
            let port = match self.servers.get(&address.ip()) {
                Some(port) => *port,
                None if address.ip().is_loopback() => address.port(),
                None => return Err(io::ErrorKind::ConnectionRefused.into()),
            };
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
        })
    }
}

/// A running proxy.
pub(crate) struct Fixture {
    pub(crate) proxy: Proxy,
    pub(crate) address: ProxyAddress,
    pub(crate) events: mpsc::Receiver<NetworkDecision>,
}

/// A proxy that allows `*.test`, except `evil.test`.
pub(crate) fn config(changes: Value) -> ProxyConfig {
    let mut proxy = json!({
        "enabled": true, "enableSocks5": true, "enableSocks5Udp": true, "allowUpstreamProxy": false,
        "dangerouslyAllowAllUnixSockets": false, "mode": "full", "allowLocalBinding": false,
        "domains": {"*.test": "allow", "evil.test": "deny"},
    });
    let members = proxy.as_object_mut().expect("an object");
    members.extend(changes.as_object().expect("an object").clone());
    let params = json!({"proxy": proxy, "policyDecisionTimeoutMs": 1});
    let params = serde_json::from_value(params).expect("params");
    ProxyConfig::from_params(&params, "p").expect("valid")
}

pub(crate) fn start(dialer: TestDialer) -> Fixture {
    start_with(dialer, config(json!({})), None, Limits::default())
}

pub(crate) fn start_with(
    dialer: TestDialer,
    config: ProxyConfig,
    decider: Option<Arc<dyn Decider>>,
    limits: Limits,
) -> Fixture {
    let (listeners, address) = Listeners::bind_loopback(config.socks).expect("bind");
    let (sender, events) = mpsc::channel(4096);
    let parts = Parts {
        config,
        decider,
        dialer: Arc::new(dialer),
        events: sender,
        limits,
    };
    let proxy = Proxy::start(listeners, parts).expect("start");
    Fixture {
        proxy,
        address,
        events,
    }
}

impl Fixture {
    /// Sends bytes to the HTTP proxy and returns its response until it closes the connection.
    pub(crate) async fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address.http)
            .await
            .expect("connect");
        stream.write_all(request.as_bytes()).await.expect("write");
        let mut response = Vec::new();
        // The proxy may reset the connection after an invalid request.
        let _ = stream.read_to_end(&mut response).await;
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Opens a tunnel; fails with the response if it is refused.
    pub(crate) async fn connect(&self, target: &str) -> Result<TcpStream, String> {
        let mut stream = TcpStream::connect(self.address.http)
            .await
            .expect("connect");
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("write");
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            response.push(stream.read_u8().await.expect("a response"));
        }
        let head = String::from_utf8(response).expect("text");
        if head.starts_with("HTTP/1.1 200 ") {
            return Ok(stream);
        }
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).expect("a length");
        let length = length
            .split("\r\n")
            .next()
            .expect("a line")
            .parse()
            .expect("a number");
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a body");
        Err(head + &String::from_utf8(body).expect("text"))
    }

    /// Returns the next decision as words.
    pub(crate) async fn decision(&mut self) -> String {
        let decision = self.events.recv().await.expect("a decision");
        let json = serde_json::to_value(&decision).expect("JSON");
        let words = ["decision", "reason", "protocol", "host"].map(|name| json[name].as_str());
        let words: Vec<_> = words.into_iter().flatten().collect();
        format!("{} {}", words.join(" "), decision.port)
    }
}

/// Starts a server that echoes bytes. Returns its port.
pub(crate) async fn echo_server() -> u16 {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    port
}

/// Starts a server that answers each connection with its first request, as the body of a response.
pub(crate) async fn mirror_server() -> u16 {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !is_complete(&request) {
                    match stream.read_u8().await {
                        Ok(byte) => request.push(byte),
                        Err(_) => return,
                    }
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close, x-hop\r\n\
                     x-hop: 1\r\nx-end: 1\r\n\r\n",
                    request.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&request).await;
            });
        }
    });
    port
}

/// Whether this is a head without a body, or a body that says that it ends.
fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let has_body = text.contains("content-length") || text.contains("transfer-encoding");
    text.ends_with("the end") || (text.ends_with("\r\n\r\n") && !has_body)
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("bind");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// Answers with a function.
pub(crate) struct Answering<F>(pub(crate) F);

impl<F> Decider for Answering<F>
where
    F: Fn(NetworkTarget) -> Decision + Send + Sync + 'static,
{
    fn decide(&self, target: NetworkTarget) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>> {
        let answer = (self.0)(target);
        Box::pin(async { answer })
    }
}

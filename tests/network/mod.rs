//! Tests managed networks: the proxy of a process, and attempts to get past it.

mod activity;
mod combinations;
mod decider;
mod invalid;
mod lifetime;
mod names;
mod own_policies;

use outpost_testkit::{Client, Server, Start, Transport, sh};
use serde_json::{Value, json};

use crate::outpost;

/// A configuration of `networkProxy.proxy` that allows these hosts, with other members.
fn proxy(domains: Value, more: Value) -> Value {
    let mut proxy = json!({
        "enabled": true, "enableSocks5": true, "enableSocks5Udp": true, "allowUpstreamProxy": false,
        "dangerouslyAllowAllUnixSockets": false, "mode": "full", "domains": domains,
        "unixSockets": null, "allowLocalBinding": false,
    });
    extend(&mut proxy, more);
    proxy
}

fn extend(object: &mut Value, more: Value) {
    let (Value::Object(object), Value::Object(more)) = (object, more) else {
        panic!("not objects");
    };
    object.extend(more);
}

/// A sandbox that reads everything and writes `/tmp`.
fn sandbox(network: &str) -> Value {
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "special", "value": {"kind": "slash_tmp"}}, "access": "write"},
            ]},
            "network": network,
        },
        "cwd": "file:///tmp", "workspaceRoots": [], "windowsSandboxLevel": "disabled",
        "useLegacyLandlock": false,
    })
}

/// A script whose only network is a proxy.
fn managed(id: &str, script: &str, proxy: Value) -> Start {
    sh(id, script)
        .with("sandbox", sandbox("enabled"))
        .with("enforceManagedNetwork", true)
        .with("networkProxy", json!({"proxy": proxy}))
}

/// Asks for decisions of the client.
fn asking(start: Start, proxy: Value, timeout_ms: u64) -> Start {
    let network = json!({"proxy": proxy, "policyDecisionTimeoutMs": timeout_ms});
    start.with("networkProxy", network)
}

/// The standard output of a script that succeeds.
async fn output(client: &Client, start: Start) -> String {
    let id = start.id().to_owned();
    let log = client.run(start).await;
    assert_eq!(log.code(), 0, "{id}: {}", log.text());
    log.text()
}

/// All decisions about a process so far, each as words.
fn decisions(client: &Client, process: &str) -> Vec<String> {
    let received = client.received();
    let decisions = received.iter().filter(|message| {
        message["method"] == "network/policyDecision" && message["params"]["processId"] == process
    });
    let words = decisions.map(|message| {
        let params = &message["params"];
        let words = ["decision", "source", "reason", "protocol", "host"].map(|name| &params[name]);
        let words: Vec<_> = words.iter().filter_map(|word| word.as_str()).collect();
        format!("{} {}", words.join(" "), params["port"])
    });
    words.collect()
}

/// Waits for a decision about a process. Notifications are independent of its events.
async fn wait_decision(client: &Client, process: &str, decision: &str) {
    let what = format!("the decision {decision:?}");
    client
        .until(&what, |_| {
            let all = decisions(client, process);
            all.iter().any(|one| one == decision).then_some(())
        })
        .await;
}

/// A server in a network of its own, with public addresses, names and servers for them.
struct Internet {
    server: Server,
    client: Client,
}

/// Names in the network, with addresses of its loopback device.
const HOSTS: &str = "127.0.0.1 localhost
::1 localhost
93.184.216.34 allowed.test sub.allowed.test xn--bcher-kva.test
93.184.216.35 other.test denied.test
10.1.2.3 private.test
127.0.0.1 loopback.test
169.254.169.254 metadata.test
93.184.216.34 mixed.test
10.1.2.3 mixed.test
";

/// An HTTP server on all addresses, port 80 and 8080, and an echo server on port 2222. A path that begins
/// with `/to/` redirects to the rest of it. Every response names the address that it was sent to.
const SERVERS: &str = r#"
import http.server, socketserver, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = ('hello from %s as %s\n' % (self.connection.getsockname()[0], self.headers['Host'])).encode()
        redirects = self.path.startswith('/to/')
        self.send_response(302 if redirects else 200)
        if redirects:
            self.send_header('Location', 'http://' + self.path[4:])
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)
    do_HEAD = do_POST = do_PUT = do_OPTIONS = do_GET
    def log_message(self, *args):
        pass
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024
for port, handler in (80, Handler), (8080, Handler), (2222, Echo):
    server = Server(('0.0.0.0', port), handler)
    threading.Thread(target=server.serve_forever).start()
print('ready', flush=True)
"#;

impl Internet {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with arguments.
    async fn with(args: &[&str]) -> Self {
        let hosts = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&hosts, HOSTS).expect("write");
        let setup = format!(
            "mount --bind {} /etc/hosts && ip link set lo up && \
             for address in 93.184.216.34 93.184.216.35 10.1.2.3 169.254.169.254; do \
             ip address add $address/32 dev lo; done; exec \"$0\" \"$@\"",
            hosts.path().display()
        );
        let prelude =
            format!("exec unshare --map-root-user --net --mount sh -c '{setup}' \"$0\" \"$@\"");
        let server = outpost()
            .on(Transport::Unix)
            .args(args)
            .after_shell(&prelude);
        let server = server.start().await;
        let client = server.client().await;
        let script = server.dir().join("servers.py");
        std::fs::write(&script, SERVERS).expect("write");
        let path = script.to_str().expect("UTF-8");
        client
            .start(Start::new("servers", &["/usr/bin/python3", path]))
            .await;
        client.wait_output("servers", "ready").await;
        Self { server, client }
    }
}

//! `network`: policies of our own, with and without a sandbox.

use outpost_testkit::{Start, sh};
use serde_json::{Value, json};

use super::{Internet, output, sandbox, wait_decision};
use crate::{outpost, ready};

/// A script with a network policy.
fn with_policy(id: &str, script: &str, network: Value) -> Start {
    sh(id, script).with("network", network)
}

fn get(url: &str) -> String {
    format!("curl -s -m 10 -o /dev/null -w '%{{http_code}}\n' {url}; ")
}

#[tokio::test]
async fn hosts_ports_and_networks_of_the_rules_are_reached() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let network = json!({
        "allow": ["allowed.test:80", "*.allowed.test", "93.184.216.32/30:8080-8090", "other.test:8000-9000"],
        "deny": ["93.184.216.35:8080"],
    });
    for (id, is_sandboxed) in [("confined", true), ("network-only", false)] {
        let urls = [
            ("http://allowed.test/", "200"),
            ("http://allowed.test:8080/", "403"),
            ("http://sub.allowed.test:8080/", "200"),
            ("http://93.184.216.34:8080/", "200"),
            ("http://93.184.216.34/", "403"),
            ("http://93.184.216.35:8080/", "403"),
            // Resolves to the address that is denied.
            ("http://other.test:8080/", "403"),
            ("http://denied.test/", "403"),
            ("http://10.1.2.3/", "403"),
        ];
        let script: String = urls.iter().map(|(url, _)| get(url)).collect();
        let around = "curl -s -m 10 --noproxy '*' http://93.184.216.34:8080/ || echo around: $?";
        let mut start = with_policy(id, &format!("{script}{around}"), network.clone());
        if is_sandboxed {
            start = start.with("sandbox", sandbox("enabled"));
        }
        let text = output(client, start).await;
        let expected: Vec<_> = urls.iter().map(|(_, code)| *code).collect();
        assert_eq!(
            text,
            format!("{}\naround: 7\n", expected.join("\n")),
            "{id}"
        );
        wait_decision(
            client,
            id,
            "deny baseline_policy denied http 93.184.216.35 8080",
        )
        .await;
    }
}

#[tokio::test]
async fn process_without_a_sandbox_for_its_files_is_confined_to_the_network() {
    let (_server, client) = ready().await;
    let dir = tempfile::tempdir_in("/tmp").expect("a directory");
    let file = dir.path().join("file");
    let script = format!("echo x > {}; grep -c : /proc/net/dev", file.display());
    let start = with_policy("p", &script, json!({"allow": ["a.test"]}));
    let started = client.start(start).await;
    assert_eq!(started["sandboxType"], "linuxSeccomp");
    assert_eq!(client.closed("p").await.text(), "1\n");
    assert!(file.exists());
}

#[tokio::test]
async fn private_addresses_are_reached_if_listed_or_with_local_binding() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let urls = [
        "http://10.1.2.3/",
        "http://private.test/",
        "http://loopback.test/",
    ];
    let script: String = urls.iter().map(|url| get(url)).collect();
    for (id, network, codes) in [
        ("wildcards", json!({"allow": ["*"]}), "403\n403\n403\n"),
        (
            "listed",
            json!({"allow": ["10.0.0.0/8", "private.test"]}),
            "200\n403\n403\n",
        ),
        (
            "binding",
            json!({"allow": ["10.1.2.3", "private.test"], "allowLocalBinding": true}),
            "200\n200\n403\n",
        ),
    ] {
        // Variables exclude local networks with local binding.
        let script = format!("NO_PROXY= no_proxy=; export NO_PROXY no_proxy; {script}");
        let text = output(client, with_policy(id, &script, network)).await;
        assert_eq!(text, codes, "{id}");
    }
}

/// Connects to an echo server as the `ProxyCommand` of ssh does.
const CONNECT: &str = r#"
import socket, sys
proxy = socket.create_connection(('127.0.0.1', 43128))
proxy.sendall(b'CONNECT allowed.test:%s HTTP/1.1\r\nHost: allowed.test\r\n\r\n' % sys.argv[1].encode())
reply = proxy.makefile('rb')
print(reply.readline().split()[1].decode())
while reply.readline() not in (b'\r\n', b''):
    pass
if sys.argv[1] == '2222':
    proxy.sendall(b'SSH-2.0\n')
    print(reply.readline().decode())
"#;

#[tokio::test]
async fn other_protocols_are_tunnelled_to_an_allowed_port() {
    let internet = Internet::new().await;
    let script = internet.server.dir().join("connect.py");
    std::fs::write(&script, CONNECT).expect("write");
    let script = script.display();
    let both = format!("/usr/bin/python3 {script} 2222; /usr/bin/python3 {script} 80");
    let start = with_policy("p", &both, json!({"allow": ["allowed.test:2222"]}));
    let text = output(&internet.client, start).await;
    assert_eq!(text, "200\nSSH-2.0\n\n403\n");
}

#[tokio::test]
async fn command_has_the_network_of_its_policy() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let script = format!(
        "{}{}",
        get("http://allowed.test/"),
        get("http://other.test/")
    );
    for more in [
        json!({}),
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "readOnly", "networkAccess": true}}),
    ] {
        let mut params = json!({
            "command": ["/bin/sh", "-c", script], "network": {"allow": ["allowed.test"]},
        });
        super::extend(&mut params, more);
        let result = client.call("command/exec", params).await;
        assert_eq!(result["stdout"], "200\n403\n");
    }
}

#[tokio::test]
async fn invalid_policies_start_nothing() {
    let (_server, client) = ready().await;
    for (network, message) in [
        (
            json!({"policy": "none"}),
            "there is no network policy \"none\"",
        ),
        (
            json!({"allow": ["http://a.test"]}),
            "invalid network policy: unsupported domain pattern syntax: http://a.test",
        ),
        (
            json!({"allow": ["a.test:99999"]}),
            "invalid network policy: invalid port in the rule: a.test:99999",
        ),
        (
            json!({"deny": ["*"]}),
            "invalid network policy: `*` may be allowed only; without a rule, nothing is allowed",
        ),
        (
            json!({"alow": ["a.test"]}),
            "network: unknown member \"alow\"; did you mean \"allow\"?",
        ),
        (
            json!("packages"),
            "invalid type: string \"packages\", expected an object",
        ),
    ] {
        let error = client
            .start_fails(with_policy("p", "true", network.clone()))
            .await;
        assert_eq!((error.code, &*error.message), (-32602, message));
        let params = json!({"command": ["true"], "network": network});
        let error = client.call_fails("command/exec", params).await;
        assert!(error.message.ends_with(message), "{}", error.message);
    }
    for (name, value) in [
        (
            "networkProxy",
            json!({"proxy": super::proxy(json!({}), json!({}))}),
        ),
        ("managedNetwork", json!({"loopbackPorts": [1]})),
    ] {
        let start = with_policy("p", "true", json!({"allow": ["a.test"]}));
        let error = client.start_fails(start.with(name, value)).await;
        let message = "`network` cannot be combined with `networkProxy` or `managedNetwork`";
        assert_eq!((error.code, &*error.message), (-32602, message));
    }
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn policy_that_can_not_be_enforced_is_rejected() {
    let level = ["--sandbox-level", "landlock"];
    let server = outpost().args(&level).start().await;
    let client = server.client().await;
    let error = client
        .start_fails(with_policy("p", "true", json!({"allow": ["a.test"]})))
        .await;
    assert_eq!(error.code, -32602);
    let message = "sandbox intent cannot be enforced on this executor: ";
    assert!(error.message.starts_with(message), "{}", error.message);
}

//! `networkProxy`, `sandbox` and `enforceManagedNetwork` together.

use outpost_testkit::http_test_server::{HttpTestServer, page};
use outpost_testkit::sh;
use serde_json::{Value, json};

use super::{managed, output, proxy, sandbox, wait_decision};
use crate::ready;

async fn web_server() -> HttpTestServer {
    HttpTestServer::start(|request| {
        page(
            "200 OK",
            &[],
            format!("you asked for {}", request.target).as_bytes(),
        )
    })
    .await
}

/// Reports whether the server is reached through the variables, and without them.
fn attempts(url: &str) -> String {
    format!(
        "curl -s -m 10 {url} || echo through: $?; echo; curl -s -m 10 --noproxy '*' {url} || echo around: $?"
    )
}

#[tokio::test]
async fn network_is_that_of_the_combination() {
    let (_server, client) = ready().await;
    let web = web_server().await;
    let reached = "you asked for /x";
    let proxied = proxy(json!({"127.0.0.1": "allow"}), json!({}));
    let script = attempts(&web.url("/x"));
    for (id, network, enforce, through, around, sandbox_type) in [
        ("free", None, true, true, true, "none"),
        ("free-too", None, false, true, true, "none"),
        (
            "enforced",
            Some("enabled"),
            true,
            true,
            false,
            "linuxSeccomp",
        ),
        (
            "enforced-too",
            Some("restricted"),
            true,
            true,
            false,
            "linuxSeccomp",
        ),
        (
            "nothing",
            Some("restricted"),
            false,
            false,
            false,
            "linuxSeccomp",
        ),
        ("open", Some("enabled"), false, true, true, "linuxSeccomp"),
    ] {
        let mut start = sh(id, &script)
            .with("enforceManagedNetwork", enforce)
            .with("networkProxy", json!({"proxy": proxied}));
        if let Some(network) = network {
            start = start.with("sandbox", sandbox(network));
        }
        let started = client.start(start).await;
        assert_eq!(started["sandboxType"], sandbox_type, "{id}");
        let text = client.closed(id).await.text();
        let expected = |is_reached: bool, failure: &str| match is_reached {
            true => reached.to_owned(),
            false => failure.to_owned(),
        };
        // 7: cannot connect.
        let through = expected(through, "through: 7\n");
        let around = expected(around, "around: 7\n");
        assert_eq!(text, format!("{through}\n{around}"), "{id}");
    }
}

#[tokio::test]
async fn variables_point_to_the_proxy_whatever_the_client_sends() {
    let (_server, client) = ready().await;
    let names = "env | grep -iE 'proxy|ELECTRON|NODE_USE|CODEX' | sort";
    let env = json!({"PATH": "/usr/bin:/bin", "HTTP_PROXY": "http://evil:1", "no_proxy": "*"});
    for socks in [true, false] {
        let more = json!({"enableSocks5": socks});
        let id = format!("p{socks}");
        let start = managed(&id, names, proxy(json!({}), more)).with("env", env.clone());
        let text = output(&client, start).await;
        let all = if socks {
            "socks5h://127.0.0.1:41080"
        } else {
            "http://127.0.0.1:43128"
        };
        for expected in [
            "HTTP_PROXY=http://127.0.0.1:43128",
            "https_proxy=http://127.0.0.1:43128",
            "npm_config_proxy=http://127.0.0.1:43128",
            &format!("ALL_PROXY={all}"),
            "NO_PROXY=",
            "no_proxy=",
            "CODEX_NETWORK_PROXY_ACTIVE=1",
            "CODEX_NETWORK_ALLOW_LOCAL_BINDING=0",
            "ELECTRON_GET_USE_PROXY=true",
            "NODE_USE_ENV_PROXY=1",
        ] {
            assert!(
                text.lines().any(|line| line == expected),
                "{expected}: {text}"
            );
        }
        assert!(
            !text.contains("evil") && text.lines().count() == 34,
            "{text}"
        );
    }
}

#[tokio::test]
async fn ports_of_the_request_or_of_its_variables_are_all_that_is_reached() {
    let (_server, client) = ready().await;
    let (proxy, other) = (web_server().await, web_server().await);
    let port = proxy.address().port();
    let variable = format!("http://127.0.0.1:{port}");
    let script = format!(
        "curl -s -m 10 -x '' {}; curl -s -m 10 -x '' {} || echo other: $?",
        proxy.url("/x"),
        other.url("/x")
    );
    let ports = json!({"loopbackPorts": [port]});
    let env = json!({"PATH": "/usr/bin:/bin", "HTTP_PROXY": variable});
    let none = json!({"PATH": "/usr/bin:/bin"});
    for (id, network, env) in [("named", ports, &none), ("variable", Value::Null, &env)] {
        let start = sh(id, &script)
            .with("sandbox", sandbox("restricted"))
            .with("enforceManagedNetwork", true)
            .with("managedNetwork", network)
            .with("env", env.clone());
        let text = output(&client, start).await;
        assert_eq!(text, "you asked for /xother: 7\n", "{id}");
    }
}

#[tokio::test]
async fn enforcement_without_any_proxy_is_rejected_in_a_sandbox() {
    let (_server, client) = ready().await;
    let foreign = json!({"PATH": "/bin", "HTTPS_PROXY": "http://proxy.example:3128"});
    for (env, message) in [
        (
            json!({}),
            "managed proxy mode requires proxy environment variables",
        ),
        (
            foreign,
            "managed proxy mode requires parseable loopback proxy endpoints",
        ),
    ] {
        let start = sh("p", "true")
            .with("sandbox", sandbox("enabled"))
            .with("enforceManagedNetwork", true)
            .with("env", env);
        let error = client.start_fails(start).await;
        let message = format!("sandbox intent cannot be enforced on this executor: {message}");
        assert_eq!((error.code, error.message), (-32602, message));
    }
    assert_eq!(client.listed("p").await, None);
    // Without a sandbox there is nothing to enforce it with, and nothing is.
    let start = sh("free", "echo free").with("enforceManagedNetwork", true);
    assert_eq!(output(&client, start).await, "free\n");
}

#[tokio::test]
async fn terminal_and_socks_are_proxied_too() {
    let (_server, client) = ready().await;
    let web = web_server().await;
    let port = web.address().port();
    let script = format!("curl -s -m 10 -x \"$ALL_PROXY\" {}", web.url("/x"));
    let start = managed(
        "p",
        &script,
        proxy(json!({"127.0.0.1": "allow"}), json!({})),
    );
    assert_eq!(output(&client, start.tty()).await, "you asked for /x");
    let decision = format!("allow baseline_policy allow socks5_tcp 127.0.0.1 {port}");
    wait_decision(&client, "p", &decision).await;
}

//! Tests that a principal with a network policy reaches nothing else.

use outpost_testkit::{
    Client, Server, Start,
    http_test_server::{HttpTestServer, page},
    sh,
};
use serde_json::{Value, json};

use super::support::{Directories, app_client, managed, special};

/// A server with a principal whose network policy allows one of two HTTP servers.
struct Fixture {
    directories: Directories,
    _server: Server,
    /// Its policy is that of its table.
    bound: Client,
    /// Its policy is that of its sandbox.
    sandboxed: Client,
    free: Client,
    allowed: HttpTestServer,
    other: HttpTestServer,
}

async fn web_server() -> HttpTestServer {
    HttpTestServer::start(|_| page("200 OK", &[], b"hello")).await
}

impl Fixture {
    async fn new() -> Self {
        let directories = Directories::new();
        let (allowed, other) = (web_server().await, web_server().await);
        let ws = directories.text("ws");
        let config = format!(
            "sandbox.default_profile = \":danger-full-access\"\n\
             [network_policies.packages]\ninclude = [\"local\"]\nallow = [\"a.test\"]\n\
             [network_policies.local]\nallow = [\"{}\"]\n\
             [principals.bound]\nnetwork = \"packages\"\n\
             [principals.sandboxed]\nsandbox = \"strict\"\nroots = [\"{ws}\"]\n\
             [sandbox.profiles.strict]\nnetwork = \"packages\"\n\
             files = {{ \":root\" = \"read\", \":project_roots\" = \"write\" }}\n",
            allowed.address()
        );
        let mut tokens = Vec::new();
        for name in ["bound", "sandboxed", "free"] {
            tokens.push(directories.token(name).await);
        }
        let server = directories.server(&config).start().await;
        Fixture {
            bound: app_client(&server, &tokens[0]).await,
            sandboxed: app_client(&server, &tokens[1]).await,
            free: app_client(&server, &tokens[2]).await,
            directories,
            _server: server,
            allowed,
            other,
        }
    }

    /// Prints the status of requests to both servers through the proxy of the environment, and to the
    /// allowed one without it; 000 for none.
    fn script(&self) -> String {
        let get = "curl -s -m 10 -o /dev/null -w '%{http_code} '";
        let (allowed, other) = (self.allowed.url("/"), self.other.url("/"));
        format!("{get} {allowed}; {get} {other}; {get} --noproxy '*' {allowed}; true")
    }

    fn start(&self, client: &Client, more: Value) -> Start {
        let id = format!("p{}", client.fresh_id());
        let mut start = sh(&id, &self.script()).cwd(&self.directories.path("ws"));
        for (name, value) in more.as_object().expect("an object") {
            start = start.with(name, value.clone());
        }
        start
    }

    async fn reached(&self, client: &Client, more: Value) -> String {
        let start = self.start(client, more);
        client.run(start).await.text().trim().to_owned()
    }

    fn sandbox(&self, network: &str) -> Value {
        managed(
            &[special("root", "read")],
            network,
            &[&self.directories.path("ws")],
        )
    }
}

const ONLY_ALLOWED: &str = "200 403 000";
const ALL: &str = "200 200 200";
const NONE: &str = "000 000 000";
const REFUSED: &str = "403 403 000";

#[tokio::test]
async fn network_of_a_start_is_narrowed() {
    let fixture = Fixture::new().await;
    let all = format!("{}", fixture.other.address());
    let allowed = fixture.allowed.address().to_string();
    let proxy = json!({"proxy": {
        "enabled": true, "enableSocks5": true, "enableSocks5Udp": false, "allowUpstreamProxy": false,
        "dangerouslyAllowAllUnixSockets": false, "mode": "full", "domains": {"127.0.0.1": "allow"},
        "allowLocalBinding": false,
    }});
    for (more, bound, free) in [
        (json!({}), ONLY_ALLOWED, ALL),
        (
            json!({"sandbox": fixture.sandbox("enabled")}),
            ONLY_ALLOWED,
            ALL,
        ),
        (
            json!({"sandbox": fixture.sandbox("restricted")}),
            NONE,
            NONE,
        ),
        (
            json!({"network": {"allow": [all, allowed]}}),
            ONLY_ALLOWED,
            "200 200 000",
        ),
        (
            json!({"network": {"allow": ["127.0.0.0/8"]}, "sandbox": fixture.sandbox("restricted")}),
            ONLY_ALLOWED,
            "200 200 000",
        ),
        (json!({"network": {"allow": [all]}}), REFUSED, "403 200 000"),
        (
            json!({"network": {"policy": "packages"}}),
            ONLY_ALLOWED,
            ONLY_ALLOWED,
        ),
        (
            json!({"networkProxy": proxy, "enforceManagedNetwork": false}),
            ONLY_ALLOWED,
            ALL,
        ),
    ] {
        assert_eq!(
            fixture.reached(&fixture.bound, more.clone()).await,
            bound,
            "{more}"
        );
        assert_eq!(
            fixture.reached(&fixture.sandboxed, more.clone()).await,
            bound,
            "{more}"
        );
        assert_eq!(
            fixture.reached(&fixture.free, more.clone()).await,
            free,
            "{more}"
        );
    }
    let started = fixture
        .bound
        .start(fixture.start(&fixture.bound, json!({})))
        .await;
    assert_eq!(started["sandboxType"], "linuxSeccomp");
}

#[tokio::test]
async fn network_of_other_dialects_is_narrowed() {
    let fixture = Fixture::new().await;
    let command = json!(["/bin/sh", "-c", fixture.script()]);
    for client in [&fixture.bound, &fixture.sandboxed] {
        let params = json!({"command": command, "cwd": fixture.directories.text("ws")});
        let result = client.call("command/exec", params.clone()).await;
        assert_eq!(
            result["stdout"].as_str().expect("text").trim(),
            ONLY_ALLOWED
        );
        let mut spawn = params;
        spawn["processHandle"] = json!("h");
        client.call("process/spawn", spawn).await;
        let exited = client
            .until("the exit", |received| {
                let is_exit = |message: &Value| {
                    message["method"] == "process/exited"
                        && message["params"]["processHandle"] == "h"
                };
                let message = received.messages.iter().find(|message| is_exit(message))?;
                Some(message["params"].clone())
            })
            .await;
        assert_eq!(
            exited["stdout"].as_str().expect("text").trim(),
            ONLY_ALLOWED
        );
    }
    let params = json!({
        "command": command, "sandboxPolicy": {"type": "dangerFullAccess"},
    });
    let result = fixture.bound.call("command/exec", params).await;
    assert_eq!(
        result["stdout"].as_str().expect("text").trim(),
        ONLY_ALLOWED
    );
    // A profile with a network policy has it for every principal.
    let params = json!({"command": command, "permissionProfile": "strict"});
    let result = fixture.free.call("command/exec", params).await;
    assert_eq!(
        result["stdout"].as_str().expect("text").trim(),
        ONLY_ALLOWED
    );
}

#[tokio::test]
async fn ways_past_the_policy_are_refused() {
    let fixture = Fixture::new().await;
    let port = fixture.other.address().port();
    let ports = json!({
        "sandbox": fixture.sandbox("enabled"), "enforceManagedNetwork": true,
        "managedNetwork": {"loopbackPorts": [port]},
    });
    let request = json!({
        "requestId": "r", "method": "GET", "url": fixture.allowed.url("/"), "headers": [],
    });
    for client in [&fixture.bound, &fixture.sandboxed] {
        let error = client
            .start_fails(fixture.start(client, ports.clone()))
            .await;
        assert_eq!(error.parts().0, -32011, "{}", error.message);
        let error = client.call_fails("http/request", request.clone()).await;
        assert_eq!(error.parts().0, -32011, "{}", error.message);
    }
    let log = fixture.free.run(fixture.start(&fixture.free, ports)).await;
    assert_eq!(log.code(), 0);
    fixture.free.call("http/request", request).await;
}

//! Tests pages in a real browser, which try to connect to a server on loopback.

use std::env;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use outpost_testkit::TestTag;
use outpost_testkit::deadline::expect_interpreter;
use outpost_testkit::http_test_server::{HttpTestServer, page};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{outpost, ready};

/// A script that opens WebSockets one after the other and posts what became of them.
const SCRIPT: &str = "
    const open = ([url, protocols]) => new Promise(done => {
        const socket = new WebSocket(url, protocols);
        socket.onopen = () => done(`open ${socket.protocol}`);
        socket.onclose = event => done(`closed ${event.code}`);
    });
    (async () => {
        const results = [];
        for (const attempt of attempts) results.push(await open(attempt));
        await fetch('/results', {method: 'POST', body: JSON.stringify(results)});
    })();
";

/// A web site with one page.
struct Site {
    server: HttpTestServer,
    attempts: Arc<OnceLock<Value>>,
}

impl Site {
    async fn start() -> Self {
        let attempts = Arc::<OnceLock<Value>>::default();
        let shown = Arc::clone(&attempts);
        let server = HttpTestServer::start(move |request| match &*request.target {
            "/" => {
                let attempts = shown.get().cloned().unwrap_or_default();
                let html = format!("<script>const attempts = {attempts};{SCRIPT}</script>");
                page("200 OK", &["Content-Type: text/html"], html.as_bytes())
            }
            _ => page("204 No Content", &[], b""),
        });
        let server = server.await;
        Site { server, attempts }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Opens the page in a browser. It tries these URLs with these subprotocols. Returns the results.
    async fn results(&self, attempts: &[(String, &[&str])]) -> Vec<String> {
        let attempts = json!(attempts);
        self.attempts.set(attempts).expect("one browser");
        let browser = Browser::open(&format!("{}/", self.origin()));
        let posted = async {
            let mut number = 0;
            loop {
                let request = self.server.request(number).await;
                if request.target == "/results" {
                    return request.body;
                }
                number += 1;
            }
        };
        let posted = expect_interpreter("the page's results", posted).await;
        browser.close().await;
        serde_json::from_slice(&posted).expect("results")
    }
}

/// Chromium without a window, with a new profile.
struct Browser {
    child: tokio::process::Child,
    tag: TestTag,
    _profile: tempfile::TempDir,
}

impl Browser {
    fn open(url: &str) -> Self {
        let tag = TestTag::new();
        let profile = tempfile::tempdir().expect("a directory");
        let child = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync"])
            // In a container there is little of it.
            .arg("--disable-dev-shm-usage")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            // Otherwise it uses the user's configuration, D-Bus and proxies.
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", profile.path())
            .env(TestTag::VARIABLE, tag.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("chromium is installed");
        Browser {
            child,
            tag,
            _profile: profile,
        }
    }

    /// Ends it and all of its processes.
    async fn close(mut self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32));
        kill_process(pid.expect("it runs"), Signal::TERM).expect("it runs");
        let ended = expect_interpreter("the end of the browser", self.child.wait()).await;
        ended.expect("a status");
        self.tag.gone().await;
    }
}

/// SHA-256 of `abc`.
const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const RIGHT: &[&str] = &["outpost.v1", "outpost.bearer.YWJj"];
const GUESS: &[&str] = &["outpost.v1", "outpost.bearer.YWJk"];

#[tokio::test]
async fn page_of_another_origin_cannot_connect() {
    let site = Site::start().await;
    let (open, _client) = ready().await;
    let token = ["--ws-auth", "capability-token", "--ws-token-sha256", HASH];
    let protected = outpost().args(&token).start().await;
    let [open, protected] = [&open, &protected].map(|server| format!("{}/", server.urls()[0]));
    let attempts = [
        (open.clone(), &[][..]),
        (open.replace("127.0.0.1", "localhost"), &["outpost.v1"]),
        (protected.clone(), &[]),
        (protected.clone(), GUESS),
        // Even with the token.
        (protected.clone(), RIGHT),
    ];
    let results = site.results(&attempts).await;
    assert_eq!(results, ["closed 1006"; 5]);
}

#[tokio::test]
async fn page_of_an_allowed_origin_needs_the_token() {
    let site = Site::start().await;
    let server = outpost()
        .args(&["--ws-auth", "capability-token", "--ws-token-sha256", HASH])
        .args(&["--allowed-origins", &site.origin()])
        .start()
        .await;
    let url = format!("{}/", server.urls()[0]);
    let attempts = [(url.clone(), &[][..]), (url.clone(), GUESS), (url, RIGHT)];
    let results = site.results(&attempts).await;
    assert_eq!(results, ["closed 1006", "closed 1006", "open outpost.v1"]);
}

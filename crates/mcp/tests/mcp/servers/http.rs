//! Servers over streamable HTTP.

use std::{fs, process::Stdio};

use outpost_mcp::{CallError, Limits, ServerStatus};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{Child, Command},
    sync::mpsc,
};

use super::harness::{TestEnvironment, call, everything, in_each_environment, soon, text, waiting};

/// A third-party server on a port chosen by the system. Killed when dropped.
pub(crate) struct HttpServer {
    _child: Child,
    pub(crate) port: u16,
    pub(crate) url: String,
}

impl HttpServer {
    /// Starts the reference server on Node.js.
    pub(crate) async fn on_node() -> Self {
        HttpServer::start(&everything(), "streamableHttp").await
    }

    /// Starts a server on the Python SDK that reports cancelled calls.
    pub(crate) async fn on_python() -> Self {
        HttpServer::start(&waiting(), "http").await
    }

    async fn start(server: &Value, transport: &str) -> Self {
        let args = server["args"].as_array().unwrap().iter();
        let child = Command::new(server["command"].as_str().unwrap())
            .args(args.map(|word| word.as_str().unwrap()))
            .arg(transport)
            .env("PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let pid = child.id().expect("the server runs");
        let port =
            outpost_testkit::deadline::poll_until("the listening port", || port_of(pid)).await;
        HttpServer {
            _child: child,
            port,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }
}

/// Finds the port on which a process listens in /proc.
fn port_of(pid: u32) -> Option<u16> {
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.strip_prefix("socket:[")?.to_owned();
            link.strip_suffix(']').map(str::to_owned)
        })
        .collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).ok());
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        // Column 4 is the state (0A: listening), column 10 the inode of the socket.
        .find(|line| {
            line.get(3) == Some(&"0A") && sockets.iter().any(|s| line.get(9) == Some(&s.as_str()))
        })
        .and_then(|line| u16::from_str_radix(line[1].rsplit(':').next()?, 16).ok())
}

#[tokio::test]
async fn http_server_supports_calls_resources_and_progress() {
    let server = HttpServer::on_node().await;
    in_each_environment(async |environment| {
        let pool = environment.one(&json!({"url": server.url}), &Limits::default());
        let sum = call(&pool, "get-sum", json!({"a": 2, "b": 3}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
        let session = pool.session("one").await.unwrap();
        assert!(!session.resources().await.unwrap().is_empty());

        let (sender, mut steps) = mpsc::channel(64);
        let arguments = json!({"duration": 0.4, "steps": 4});
        let arguments = arguments.as_object().unwrap().clone();
        let tool = "trigger-long-running-operation";
        let called = pool.call("one", tool, arguments, Some(&sender));
        let result = soon("a response", called).await.unwrap();
        assert!(text(&result).contains("completed"), "{result:?}");
        assert!(steps.try_recv().is_ok());

        let message = "0123456789abcdef".repeat(64 * 1024);
        let large = call(&pool, "echo", json!({"message": message}))
            .await
            .unwrap();
        assert!(text(&large) == format!("Echo: {message}"), "wrong echo");
        soon("close", pool.close()).await;
    })
    .await;
}

#[tokio::test]
async fn requests_never_bypass_the_executor() {
    let server = HttpServer::on_node().await;
    let environment = TestEnvironment::remote().await;
    let pool = environment.one(&json!({"url": server.url}), &Limits::default());
    call(&pool, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    // The server is reachable from this process as well, but must not be called from it.
    environment.executor.disappear();
    let error = call(&pool, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            CallError::NotSent(_) | CallError::Ended(_) | CallError::NotReady { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn cut_connection_is_resumed() {
    let server = HttpServer::on_node().await;
    let environment = TestEnvironment::remote().await;
    let pool = environment.one(&json!({"url": server.url}), &Limits::default());
    call(&pool, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    environment.executor.cut();
    let sum = call(&pool, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    soon("close", pool.close()).await;
}

/// Responds to one request, and returns the request's head.
async fn respond_once(listener: &TcpListener, response: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ended early");
        head.extend_from_slice(&buffer[..read]);
    }
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

async fn failure(environment: &TestEnvironment, server: &Value) -> String {
    let pool = environment.one(server, &Limits::default());
    soon("failure", pool.wait_started()).await;
    let ServerStatus::Failed(why) = &pool.statuses()["one"] else {
        panic!("{:?}", pool.statuses())
    };
    let mut message = why.to_string();
    let mut cause = std::error::Error::source(&**why);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

#[tokio::test]
async fn headers_are_sent_and_not_shown_in_errors() {
    in_each_environment(async |environment| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "secret"},
            "env_http_headers": {"X-Package": "CARGO_PKG_NAME"},
            "bearer_token_env_var": "CARGO_PKG_VERSION",
        });
        let response = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        let (message, head) = soon("both", async {
            tokio::join!(
                failure(environment, &server),
                respond_once(&listener, response)
            )
        })
        .await;
        let head = head.to_ascii_lowercase();
        let version = env!("CARGO_PKG_VERSION");
        for header in [
            "x-secret: secret".to_owned(),
            "x-package: outpost-mcp".to_owned(),
            format!("authorization: bearer {version}"),
        ] {
            assert!(head.contains(&format!("{header}\r\n")), "{header}: {head}");
        }
        assert!(message.contains("401"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn unreachable_server_fails_at_once() {
    in_each_environment(async |environment| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        drop(listener);
        let message = failure(environment, &json!({"url": url})).await;
        assert!(
            message.starts_with("the server is unreachable"),
            "{message}"
        );
        let token = json!({"url": url, "bearer_token_env_var": "NO_SUCH_VARIABLE"});
        let message = failure(environment, &token).await;
        assert!(message.contains("NO_SUCH_VARIABLE"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn server_of_a_lost_executor_fails() {
    let server = HttpServer::on_node().await;
    let environment = TestEnvironment::remote().await;
    let limits = Limits {
        restart_delay: std::time::Duration::from_millis(1),
        ..Limits::default()
    };
    let pool = environment.one(&json!({"url": server.url}), &limits);
    soon("startup", pool.wait_started()).await;
    environment.executor.disappear();
    call(&pool, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap_err();
    let mut status = pool.status("one").unwrap();
    let failed = status.wait_for(|status| matches!(status, ServerStatus::Failed(_)));
    drop(soon("permanent failure", failed).await.unwrap());
}

#[tokio::test]
async fn redirect_to_another_origin_is_not_followed() {
    in_each_environment(async |environment| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "secret"},
        });
        let redirect = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{}/mcp\r\ncontent-length: 0\r\n\r\n",
            other.local_addr().unwrap()
        );
        let redirecting = async {
            loop {
                respond_once(&listener, &redirect).await;
            }
        };
        let message = tokio::select! {
            message = failure(environment, &server) => message,
            () = redirecting => unreachable!("endless loop"),
            followed = other.accept() => panic!("followed: {followed:?}"),
        };
        assert!(message.contains("307"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn redirect_within_the_origin_is_followed() {
    in_each_environment(async |environment| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "secret"},
        });
        let redirect =
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n";
        let unauthorized = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        let responding = async {
            respond_once(&listener, redirect).await;
            respond_once(&listener, unauthorized).await
        };
        let (message, head) = soon("both", async {
            tokio::join!(failure(environment, &server), responding)
        })
        .await;
        assert!(head.starts_with("POST /mcp/ "), "{head}");
        assert!(
            head.to_ascii_lowercase().contains("x-secret: secret\r\n"),
            "{head}"
        );
        assert!(message.contains("401"), "{message}");
    })
    .await;
}

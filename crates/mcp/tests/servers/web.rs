//! Servers over HTTP: a real one, and some that say no.

use std::{fs, process::Stdio};

use outpost_mcp::{CallError, Limits, Status};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{Child, Command},
    sync::mpsc,
};

use crate::stage::{Stage, call, everything, on_each_stage, soon, text, waiting};

/// A real server, on a port that the system chose. It ends with this.
pub(crate) struct Web {
    _child: Child,
    pub(crate) port: u16,
    pub(crate) url: String,
}

impl Web {
    /// The one on Node.js.
    pub(crate) async fn on_node() -> Self {
        Web::of(&everything(), "streamableHttp").await
    }

    /// One that can be asked what was called off.
    pub(crate) async fn on_python() -> Self {
        Web::of(&waiting(), "http").await
    }

    async fn of(server: &Value, how: &str) -> Self {
        let args = server["args"].as_array().unwrap().iter();
        let child = Command::new(server["command"].as_str().unwrap())
            .args(args.map(|word| word.as_str().unwrap()))
            .arg(how)
            .env("PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let pid = child.id().expect("it runs");
        let port = outpost_testkit::patience::seen("where it listens", || port_of(pid)).await;
        Web {
            _child: child,
            port,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }
}

/// The port on which a process listens, as the kernel tells it.
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
        // The fourth column is the state, of which 0A is listening, the tenth the socket.
        .find(|line| {
            line.get(3) == Some(&"0A") && sockets.iter().any(|s| line.get(9) == Some(&s.as_str()))
        })
        .and_then(|line| u16::from_str_radix(line[1].rsplit(':').next()?, 16).ok())
}

#[tokio::test]
async fn a_server_over_http_is_like_any_other() {
    let web = Web::on_node().await;
    on_each_stage(async |stage| {
        let ensemble = stage.one(&json!({"url": web.url}), &Limits::default());
        let sum = call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
            .await
            .unwrap();
        assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
        assert!(!ensemble.resources("one").await.unwrap().is_empty());

        let (sender, mut steps) = mpsc::channel(64);
        let arguments = json!({"duration": 0.4, "steps": 4});
        let arguments = arguments.as_object().unwrap().clone();
        let tool = "trigger-long-running-operation";
        let called = ensemble.call("one", tool, arguments, Some(&sender));
        let result = soon("an answer", called).await.unwrap();
        assert!(text(&result).contains("completed"), "{result:?}");
        assert!(steps.try_recv().is_ok());

        let message = "0123456789abcdef".repeat(64 * 1024);
        let large = call(&ensemble, "echo", json!({"message": message}))
            .await
            .unwrap();
        assert!(text(&large) == format!("Echo: {message}"), "another echo");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

#[tokio::test]
async fn the_executor_is_the_only_way() {
    let web = Web::on_node().await;
    let stage = Stage::remote().await;
    let ensemble = stage.one(&json!({"url": web.url}), &Limits::default());
    call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    // From here it could be reached as well, and isn't.
    stage.executor.vanish();
    let error = call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
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
async fn a_cut_is_survived() {
    let web = Web::on_node().await;
    let stage = Stage::remote().await;
    let ensemble = stage.one(&json!({"url": web.url}), &Limits::default());
    call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    stage.executor.cut();
    let sum = call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    soon("its end", ensemble.close()).await;
}

/// Answers one request in these words, and says what it was asked.
async fn one_answer(listener: &TcpListener, answer: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the request ended early");
        head.extend_from_slice(&piece[..read]);
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

async fn failure(stage: &Stage, server: &Value) -> String {
    let ensemble = stage.one(server, &Limits::default());
    soon("it to fail", ensemble.settled()).await;
    let Status::Failed(why) = &ensemble.statuses()["one"] else {
        panic!("{:?}", ensemble.statuses())
    };
    let mut words = why.to_string();
    let mut cause = std::error::Error::source(&**why);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[tokio::test]
async fn headers_are_sent_and_a_no_is_told_without_them() {
    on_each_stage(async |stage| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "hush"},
            "env_http_headers": {"X-Package": "CARGO_PKG_NAME"},
            "bearer_token_env_var": "CARGO_PKG_VERSION",
        });
        let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        let (words, head) = soon("both", async {
            tokio::join!(failure(stage, &server), one_answer(&listener, answer))
        })
        .await;
        let head = head.to_ascii_lowercase();
        let version = env!("CARGO_PKG_VERSION");
        for header in [
            "x-secret: hush".to_owned(),
            "x-package: outpost-mcp".to_owned(),
            format!("authorization: bearer {version}"),
        ] {
            assert!(head.contains(&format!("{header}\r\n")), "{header}: {head}");
        }
        assert!(words.contains("401"), "{words}");
        assert!(!words.contains("hush"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    on_each_stage(async |stage| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        drop(listener);
        let words = failure(stage, &json!({"url": url})).await;
        assert!(words.starts_with("the server can't be reached"), "{words}");
        let token = json!({"url": url, "bearer_token_env_var": "NO_SUCH_VARIABLE"});
        let words = failure(stage, &token).await;
        assert!(words.contains("NO_SUCH_VARIABLE"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn a_server_behind_a_lost_executor_is_not_ready_any_more() {
    let web = Web::on_node().await;
    let stage = Stage::remote().await;
    let limits = Limits {
        revival_pause: std::time::Duration::from_millis(1),
        ..Limits::default()
    };
    let ensemble = stage.one(&json!({"url": web.url}), &limits);
    soon("the server", ensemble.settled()).await;
    stage.executor.vanish();
    call(&ensemble, "get-sum", json!({"a": 2, "b": 3}))
        .await
        .unwrap_err();
    let mut status = Status::Ready;
    soon("it to be given up", async {
        while !matches!(status, Status::Failed(_)) {
            status = ensemble.changed("one", &status).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn secrets_do_not_follow_to_another_origin() {
    on_each_stage(async |stage| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "hush"},
        });
        let away = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{}/mcp\r\ncontent-length: 0\r\n\r\n",
            elsewhere.local_addr().unwrap()
        );
        let pointing = async {
            loop {
                one_answer(&listener, &away).await;
            }
        };
        let words = tokio::select! {
            words = failure(stage, &server) => words,
            () = pointing => unreachable!("it goes on"),
            followed = elsewhere.accept() => panic!("it was followed: {followed:?}"),
        };
        assert!(words.contains("307"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn within_an_origin_a_server_may_point_elsewhere() {
    on_each_stage(async |stage| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = json!({
            "url": format!("http://{}/mcp", listener.local_addr().unwrap()),
            "http_headers": {"X-Secret": "hush"},
        });
        let on = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n";
        let no = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        let answering = async {
            one_answer(&listener, on).await;
            one_answer(&listener, no).await
        };
        let (words, head) = soon("both", async {
            tokio::join!(failure(stage, &server), answering)
        })
        .await;
        assert!(head.starts_with("POST /mcp/ "), "{head}");
        assert!(
            head.to_ascii_lowercase().contains("x-secret: hush\r\n"),
            "{head}"
        );
        assert!(words.contains("401"), "{words}");
    })
    .await;
}

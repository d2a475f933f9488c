//! HTTP requests of an executor, local and remote.

use std::time::Duration;

use outpost_client::{Error, Executor, HttpRequest};
use outpost_testkit::http_test_server::{self, HttpTestServer, ResponseStep};

use crate::harness::{on_every_executor, read_all, sh, soon};

/// More than the largest body of the tests.
const MOST: usize = 64 * 1024 * 1024;

async fn text(executor: &dyn Executor, request: HttpRequest) -> String {
    let response = executor.http(request).await.unwrap();
    let bytes = response.body.bytes(MOST).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn rejection(executor: &dyn Executor, request: HttpRequest) -> (i64, String) {
    match executor.http(request).await.unwrap_err() {
        Error::Rejected { code, message, .. } => (code, message),
        other => panic!("{other:?}"),
    }
}

/// The request with a streamed response and with one in one message.
fn streamed_and_whole(request: &HttpRequest) -> [HttpRequest; 2] {
    [request.clone(), request.clone().whole()]
}

#[tokio::test(flavor = "multi_thread")]
async fn request_is_echoed() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|asked| {
            let seen = format!("{} {}", asked.method, asked.values("x-a").join("+"));
            let mut body = seen.into_bytes();
            body.extend(&asked.body);
            http_test_server::page("201 Created", &["X-B: 1", "X-B: 2"], &body)
        })
        .await;
        let request = HttpRequest::post(web.url("/"))
            .header("X-A", "1")
            .header("X-A", "2")
            .body(" body");
        for request in streamed_and_whole(&request) {
            let response = executor.http(request).await.unwrap();
            assert_eq!(response.status, 201);
            assert_eq!(response.header("X-b"), Some("1"));
            let repeated = response.headers.iter().filter(|(name, _)| name == "x-b");
            let values: Vec<_> = repeated.map(|(_, value)| value.as_str()).collect();
            assert_eq!(values, ["1", "2"]);
            assert_eq!(response.body.bytes(MOST).await.unwrap(), "POST 1+2 body");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn body_is_streamed_as_it_arrives() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|_| {
            vec![
                http_test_server::head("200 OK", &["Transfer-Encoding: chunked"]),
                http_test_server::chunk(b"one"),
                ResponseStep::Wait,
                http_test_server::chunk(b"two"),
                http_test_server::chunk(b""),
            ]
        })
        .await;
        let mut response = executor.http(HttpRequest::get(web.url("/"))).await.unwrap();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "one");
        web.resume();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "two");
        assert!(response.body.next().await.is_none());
        assert!(response.body.next().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn error_messages_are_the_same_on_all_executors() {
    on_every_executor(async |executor| {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let unreachable = HttpRequest::get(format!("http://{address}/"));
        let get = || HttpRequest::get("http://127.0.0.1:1/");
        let refused = format!(
            "http/request failed: cannot connect to {address}: Connection refused (os error 111)"
        );
        for (request, code, message) in [
            (unreachable, -32603, &*refused),
            (
                HttpRequest::get("file:///etc/passwd"),
                -32602,
                "http/request url is invalid: only http and https URLs are supported",
            ),
            (
                HttpRequest::new("no method", "http://h/"),
                -32602,
                "http/request method is invalid",
            ),
            (
                get().header("A", "b\nc"),
                -32602,
                "http/request header A has a value that cannot be sent",
            ),
            (
                get().header("Content-Length", "1"),
                -32602,
                "http/request header content-length contradicts the length of the body",
            ),
            (
                get().header_from_env("A", "", "NO_SUCH_VARIABLE"),
                -32602,
                "http/request header A requires executor environment variable NO_SUCH_VARIABLE",
            ),
            (
                get().header_from_env("A", "", "codex_api_key"),
                -32602,
                "http/request header A cannot use executor environment variable codex_api_key",
            ),
        ] {
            for request in streamed_and_whole(&request) {
                assert_eq!(
                    rejection(&*executor, request).await,
                    (code, message.to_owned())
                );
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_variable_completes_a_header() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|asked| {
            let seen = asked.values("x-path").join("");
            http_test_server::page("200 OK", &[], seen.as_bytes())
        })
        .await;
        let request = HttpRequest::get(web.url("/")).header_from_env("X-Path", "is ", "PATH");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(text(&*executor, request).await, format!("is {path}"));
        let info = executor.environment().await.unwrap();
        assert!(info.capabilities.http_header_env_vars);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_unless_disabled() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|asked| match &*asked.target {
            "/a" => http_test_server::page("302 Found", &["Location: /b"], b"not here"),
            _ => http_test_server::page("200 OK", &[], b"here"),
        })
        .await;
        let request = HttpRequest::get(web.url("/a"));
        assert_eq!(text(&*executor, request.clone()).await, "here");
        let stopped = request.without_redirects();
        assert_eq!(text(&*executor, stopped).await, "not here");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_covers_the_body() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|asked| match &*asked.target {
            "/never" => vec![ResponseStep::Silence],
            _ => {
                let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
                vec![
                    head,
                    ResponseStep::Bytes(b"five.".to_vec()),
                    ResponseStep::Silence,
                ]
            }
        })
        .await;
        let limited = |path| HttpRequest::get(web.url(path)).timeout(Duration::from_millis(150));
        let words = "http/request failed: it took longer than 150 ms".to_owned();
        assert_eq!(
            rejection(&*executor, limited("/never")).await,
            (-32603, words.clone())
        );
        assert_eq!(
            rejection(&*executor, limited("/").whole()).await,
            (-32603, words)
        );
        let mut response = executor.http(limited("/")).await.unwrap();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "five.");
        let error = response.body.next().await.unwrap().unwrap_err();
        let words = "the response is incomplete: it took longer than 150 ms";
        assert_eq!(error.to_string(), words);
        assert!(response.body.next().await.is_none());
        soon("the end of all answers", web.wait_idle()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_body_is_an_error() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|_| {
            let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
            vec![
                head,
                ResponseStep::Bytes(b"five.".to_vec()),
                ResponseStep::Close,
            ]
        })
        .await;
        let response = executor.http(HttpRequest::get(web.url("/"))).await.unwrap();
        let error = response.body.bytes(MOST).await.unwrap_err();
        assert!(matches!(error, Error::BodyFailed { .. }), "{error:?}");
        let words = "the response is incomplete: the body ended early: ";
        assert!(error.to_string().starts_with(words), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_request_is_cancelled() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|asked| match &*asked.target {
            "/never" => vec![ResponseStep::Silence],
            "/half" => vec![
                http_test_server::head("200 OK", &["Content-Length: 100"]),
                ResponseStep::Bytes(b"half".to_vec()),
                ResponseStep::Silence,
            ],
            _ => vec![
                http_test_server::head("200 OK", &["Content-Length: 100000000"]),
                ResponseStep::Dots(100_000_000),
            ],
        })
        .await;
        let mut response = executor.http(HttpRequest::get(web.url("/"))).await.unwrap();
        response.body.next().await.unwrap().unwrap();
        drop(response);
        soon("the end of all answers", web.wait_idle()).await;
        // Before the response, and while a body is collected.
        let never = streamed_and_whole(&HttpRequest::get(web.url("/never")));
        let half = HttpRequest::get(web.url("/half")).whole();
        for (number, request) in never.into_iter().chain([half]).enumerate() {
            tokio::select! {
                _ = executor.http(request) => panic!("there is no response"),
                _ = web.request(1 + number) => {}
            }
            soon("the end of all answers", web.wait_idle()).await;
        }
        // Later requests succeed.
        let process = executor.start(sh("echo fine")).await.unwrap();
        assert_eq!(read_all(&process).await.stdout(), "fine\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_body_holds_back_only_itself() {
    on_every_executor(async |executor| {
        let size = 40_000_000;
        let web = HttpTestServer::start(move |asked| match &*asked.target {
            "/small" => http_test_server::page("200 OK", &[], b"small"),
            _ => {
                let length = format!("Content-Length: {size}");
                vec![
                    http_test_server::head("200 OK", &[&length]),
                    ResponseStep::Dots(size),
                ]
            }
        })
        .await;
        let mut response = executor.http(HttpRequest::get(web.url("/"))).await.unwrap();
        let first = response.body.next().await.unwrap().unwrap();
        // While it is not read, other traffic continues, however much there is.
        for _ in 0..3 {
            let small = HttpRequest::get(web.url("/small"));
            assert_eq!(text(&*executor, small).await, "small");
            let process = executor
                .start(sh("head -c 3000000 /dev/zero"))
                .await
                .unwrap();
            assert_eq!(read_all(&process).await.stdout().len(), 3_000_000);
        }
        let ahead = web.dots_written();
        assert!(ahead < size / 2, "{ahead} bytes were read ahead");
        let rest = response.body.bytes(MOST).await.unwrap();
        assert_eq!((first.len() + rest.len()) as u64, size);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_whole_body_is_rejected() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|_| {
            let head = http_test_server::head("200 OK", &["Content-Length: 33554433"]);
            vec![head, ResponseStep::Dots(33_554_433)]
        })
        .await;
        let request = HttpRequest::get(web.url("/"));
        let (code, words) = rejection(&*executor, request.clone().whole()).await;
        assert_eq!(code, -32603);
        assert!(words.contains("has to be streamed"), "{words}");
        let response = executor.http(request).await.unwrap();
        let error = response.body.bytes(1000).await.unwrap_err();
        assert!(
            matches!(error, Error::BodyTooLarge { most: 1000 }),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_executor_ends_its_bodies() {
    on_every_executor(async |executor| {
        let web = HttpTestServer::start(|_| {
            let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
            vec![
                head,
                ResponseStep::Bytes(b"five.".to_vec()),
                ResponseStep::Silence,
            ]
        })
        .await;
        let mut response = executor.http(HttpRequest::get(web.url("/"))).await.unwrap();
        response.body.next().await.unwrap().unwrap();
        executor.close().await.unwrap();
        let error = response.body.next().await.unwrap().unwrap_err();
        let words = "exec-server transport disconnected: the executor was closed";
        assert_eq!(error.to_string(), words);
        assert!(response.body.next().await.is_none());
        let late = executor.http(HttpRequest::get(web.url("/"))).await;
        assert_eq!(late.unwrap_err().to_string(), words);
        drop(response);
        soon("the end of all answers", web.wait_idle()).await;
    })
    .await;
}

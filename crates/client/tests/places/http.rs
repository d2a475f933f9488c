//! HTTP requests, from wherever the place is.

use std::time::Duration;

use outpost_client::{Error, HttpRequest, Place};
use outpost_testkit::web::{self, Say, Web};

use crate::places::{on_every_place, sh, soon, story};

/// More than any body here has.
const MOST: usize = 64 * 1024 * 1024;

async fn text(place: &dyn Place, request: HttpRequest) -> String {
    let response = place.http(request).await.unwrap();
    let bytes = response.body.bytes(MOST).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn refusal(place: &dyn Place, request: HttpRequest) -> (i64, String) {
    match place.http(request).await.unwrap_err() {
        Error::Refused { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

/// A request each way a body can come.
fn each_way(request: &HttpRequest) -> [HttpRequest; 2] {
    [request.clone(), request.clone().whole()]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_comes_back() {
    on_every_place(async |place| {
        let web = Web::start(|asked| {
            let seen = format!("{} {}", asked.method, asked.values("x-a").join("+"));
            let mut body = seen.into_bytes();
            body.extend(&asked.body);
            web::page("201 Created", &["X-B: 1", "X-B: 2"], &body)
        })
        .await;
        let request = HttpRequest::post(web.url("/"))
            .header("X-A", "1")
            .header("X-A", "2")
            .body(" body");
        for request in each_way(&request) {
            let response = place.http(request).await.unwrap();
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
async fn a_body_comes_as_it_arrives() {
    on_every_place(async |place| {
        let web = Web::start(|_| {
            vec![
                web::head("200 OK", &["Transfer-Encoding: chunked"]),
                web::chunk(b"one"),
                Say::Wait,
                web::chunk(b"two"),
                web::chunk(b""),
            ]
        })
        .await;
        let mut response = place.http(HttpRequest::get(web.url("/"))).await.unwrap();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "one");
        web.go_on();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "two");
        assert!(response.body.next().await.is_none());
        assert!(response.body.next().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_everywhere() {
    on_every_place(async |place| {
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
                "http/request url is invalid: only http and https can be asked for",
            ),
            (
                HttpRequest::new("no method", "http://h/"),
                -32602,
                "http/request method is not one that can be sent",
            ),
            (
                get().header("A", "b\nc"),
                -32602,
                "http/request header A has a value that cannot be sent",
            ),
            (
                get().header("Content-Length", "1"),
                -32602,
                "http/request header content-length does not tell the length of the body",
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
            for request in each_way(&request) {
                assert_eq!(refusal(&*place, request).await, (code, message.to_owned()));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_of_the_place_completes_a_header() {
    on_every_place(async |place| {
        let web = Web::start(|asked| {
            let seen = asked.values("x-path").join("");
            web::page("200 OK", &[], seen.as_bytes())
        })
        .await;
        let request = HttpRequest::get(web.url("/")).header_from_env("X-Path", "is ", "PATH");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(text(&*place, request).await, format!("is {path}"));
        let info = place.environment().await.unwrap();
        assert!(info.capabilities.http_header_env_vars);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_unless_that_is_not_wanted() {
    on_every_place(async |place| {
        let web = Web::start(|asked| match &*asked.target {
            "/a" => web::page("302 Found", &["Location: /b"], b"not here"),
            _ => web::page("200 OK", &[], b"here"),
        })
        .await;
        let request = HttpRequest::get(web.url("/a"));
        assert_eq!(text(&*place, request.clone()).await, "here");
        let stopped = request.without_redirects();
        assert_eq!(text(&*place, stopped).await, "not here");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_limited_for_the_body_too() {
    on_every_place(async |place| {
        let web = Web::start(|asked| match &*asked.target {
            "/never" => vec![Say::Silence],
            _ => {
                let head = web::head("200 OK", &["Content-Length: 10"]);
                vec![head, Say::Bytes(b"five.".to_vec()), Say::Silence]
            }
        })
        .await;
        let limited = |path| HttpRequest::get(web.url(path)).timeout(Duration::from_millis(150));
        let words = "http/request failed: it took longer than 150 ms".to_owned();
        assert_eq!(
            refusal(&*place, limited("/never")).await,
            (-32603, words.clone())
        );
        assert_eq!(
            refusal(&*place, limited("/").whole()).await,
            (-32603, words)
        );
        let mut response = place.http(limited("/")).await.unwrap();
        assert_eq!(response.body.next().await.unwrap().unwrap(), "five.");
        let error = response.body.next().await.unwrap().unwrap_err();
        let words = "the response is incomplete: it took longer than 150 ms";
        assert_eq!(error.to_string(), words);
        assert!(response.body.next().await.is_none());
        soon("the end of all answers", web.all_over()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_an_error() {
    on_every_place(async |place| {
        let web = Web::start(|_| {
            let head = web::head("200 OK", &["Content-Length: 10"]);
            vec![head, Say::Bytes(b"five.".to_vec()), Say::Close]
        })
        .await;
        let response = place.http(HttpRequest::get(web.url("/"))).await.unwrap();
        let error = response.body.bytes(MOST).await.unwrap_err();
        assert!(matches!(error, Error::BodyFailed { .. }), "{error:?}");
        let words = "the response is incomplete: the body broke off: ";
        assert!(error.to_string().starts_with(words), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dropped_ends() {
    on_every_place(async |place| {
        let web = Web::start(|asked| match &*asked.target {
            "/never" => vec![Say::Silence],
            "/half" => vec![
                web::head("200 OK", &["Content-Length: 100"]),
                Say::Bytes(b"half".to_vec()),
                Say::Silence,
            ],
            _ => vec![
                web::head("200 OK", &["Content-Length: 100000000"]),
                Say::Dots(100_000_000),
            ],
        })
        .await;
        let mut response = place.http(HttpRequest::get(web.url("/"))).await.unwrap();
        response.body.next().await.unwrap().unwrap();
        drop(response);
        soon("the end of all answers", web.all_over()).await;
        // Before there is a response, and while a body is gathered.
        let never = each_way(&HttpRequest::get(web.url("/never")));
        let half = HttpRequest::get(web.url("/half")).whole();
        for (number, request) in never.into_iter().chain([half]).enumerate() {
            tokio::select! {
                _ = place.http(request) => panic!("there is no response"),
                _ = web.asked(1 + number) => {}
            }
            soon("the end of all answers", web.all_over()).await;
        }
        // All is well afterwards.
        let process = place.start(sh("echo fine")).await.unwrap();
        assert_eq!(story(&process).await.stdout(), "fine\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_holds_back_that_body_alone() {
    on_every_place(async |place| {
        let size = 40_000_000;
        let web = Web::start(move |asked| match &*asked.target {
            "/small" => web::page("200 OK", &[], b"small"),
            _ => {
                let length = format!("Content-Length: {size}");
                vec![web::head("200 OK", &[&length]), Say::Dots(size)]
            }
        })
        .await;
        let mut response = place.http(HttpRequest::get(web.url("/"))).await.unwrap();
        let first = response.body.next().await.unwrap().unwrap();
        // While nobody reads it, everything else goes on, however much of that there is.
        for _ in 0..3 {
            let small = HttpRequest::get(web.url("/small"));
            assert_eq!(text(&*place, small).await, "small");
            let process = place.start(sh("head -c 3000000 /dev/zero")).await.unwrap();
            assert_eq!(story(&process).await.stdout().len(), 3_000_000);
        }
        let ahead = web.flooded();
        assert!(ahead < size / 2, "{ahead} bytes were read ahead");
        let rest = response.body.bytes(MOST).await.unwrap();
        assert_eq!((first.len() + rest.len()) as u64, size);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_can_be_too_large_to_be_had_at_once() {
    on_every_place(async |place| {
        let web = Web::start(|_| {
            let head = web::head("200 OK", &["Content-Length: 33554433"]);
            vec![head, Say::Dots(33_554_433)]
        })
        .await;
        let request = HttpRequest::get(web.url("/"));
        let (code, words) = refusal(&*place, request.clone().whole()).await;
        assert_eq!(code, -32603);
        assert!(words.contains("has to be streamed"), "{words}");
        let response = place.http(request).await.unwrap();
        let error = response.body.bytes(1000).await.unwrap_err();
        assert!(
            matches!(error, Error::BodyTooLarge { most: 1000 }),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_closed_takes_its_bodies_along() {
    on_every_place(async |place| {
        let web = Web::start(|_| {
            let head = web::head("200 OK", &["Content-Length: 10"]);
            vec![head, Say::Bytes(b"five.".to_vec()), Say::Silence]
        })
        .await;
        let mut response = place.http(HttpRequest::get(web.url("/"))).await.unwrap();
        response.body.next().await.unwrap().unwrap();
        place.close().await.unwrap();
        let error = response.body.next().await.unwrap().unwrap_err();
        let words = "exec-server transport disconnected: the place was closed";
        assert_eq!(error.to_string(), words);
        assert!(response.body.next().await.is_none());
        let late = place.http(HttpRequest::get(web.url("/"))).await;
        assert_eq!(late.unwrap_err().to_string(), words);
        drop(response);
        soon("the end of all answers", web.all_over()).await;
    })
    .await;
}

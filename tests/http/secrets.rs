//! Tests that the log contains no secrets of requests.

use outpost_testkit::{base64, http_test_server};
use rustix::process::Signal;
use serde_json::json;

use super::{get_params, request_fails, streamed};
use crate::outpost;

#[tokio::test]
async fn query_headers_and_body_are_never_logged() {
    for format in ["text", "json"] {
        let mut server = outpost()
            .env("SERVICE_KEY", "s3cret")
            .args(&["--log-level", "trace", "--log-format", format])
            .start()
            .await;
        let client = server.client().await;
        let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
            "/?s3cret" => {
                http_test_server::page("302 Found", &["Location: /s3cret?s3cret"], b"s3cret")
            }
            "/broken?s3cret" => vec![
                http_test_server::ResponseStep::Bytes(b"s3cret\r\n\r\n".to_vec()),
                http_test_server::ResponseStep::Close,
            ],
            _ => http_test_server::page("200 OK", &["Set-Cookie: s3cret"], b"s3cret"),
        })
        .await;
        let more = json!({
            "method": "POST",
            "headers": [
                {"name": "Authorization", "value": "s3cret", "valueEnvVar": "SERVICE_KEY"},
                {"name": "X-S3cret", "value": "s3cret"},
            ],
            "bodyBase64": base64(b"s3cret"),
            "requestId": "s",
            "streamResponse": true,
        });
        let with_password = web.url("/?s3cret").replace("http://", "http://me:s3cret@");
        client
            .call("http/request", get_params(&with_password, more.clone()))
            .await;
        streamed(&client, "s").await;
        request_fails(
            &client,
            get_params(&web.url("/broken?s3cret"), more.clone()),
        )
        .await;
        request_fails(&client, get_params("http://s3cret:port/?s3cret", more)).await;
        drop(client);
        server.signal(Signal::TERM);
        let log = server.wait().await.stderr;
        assert!(!log.is_empty());
        let encoded = base64(b"s3cret");
        for secret in ["s3cret", "S3cret", encoded.as_str()] {
            assert!(!log.contains(secret), "{log}");
        }
    }
}

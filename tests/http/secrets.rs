//! What the log doesn't tell.

use outpost_testkit::{base64, web};
use rustix::process::Signal;
use serde_json::json;

use super::{asking, refusal, streamed};
use crate::outpost;

#[tokio::test]
async fn no_query_no_header_and_no_body_is_logged() {
    for format in ["text", "json"] {
        let mut server = outpost()
            .env("SERVICE_KEY", "s3cret")
            .args(&["--log-level", "trace", "--log-format", format])
            .start()
            .await;
        let client = server.client().await;
        let web = web::Web::start(|asked| match &*asked.target {
            "/?s3cret" => web::page("302 Found", &["Location: /s3cret?s3cret"], b"s3cret"),
            "/broken?s3cret" => vec![web::Say::Bytes(b"s3cret\r\n\r\n".to_vec()), web::Say::Close],
            _ => web::page("200 OK", &["Set-Cookie: s3cret"], b"s3cret"),
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
            .call("http/request", asking(&with_password, more.clone()))
            .await;
        streamed(&client, "s").await;
        refusal(&client, asking(&web.url("/broken?s3cret"), more.clone())).await;
        refusal(&client, asking("http://s3cret:port/?s3cret", more)).await;
        drop(client);
        server.signal(Signal::TERM);
        let log = server.ended().await.stderr;
        assert!(!log.is_empty());
        let encoded = base64(b"s3cret");
        for secret in ["s3cret", "S3cret", encoded.as_str()] {
            assert!(!log.contains(secret), "{log}");
        }
    }
}

//! `fs/readFile` and `fs/writeFile`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use super::{about, decoded, encoded, failed, fifo, file, invalid, link, missing, refused, uri};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn what_is_written_is_read() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        for content in [&b""[..], b"hello", b"\0\xff\n", &[7; 300_000]] {
            let path = server.folder().join("file");
            let params = about(&path, &json!({"dataBase64": encoded(content)}));
            assert_eq!(client.call("fs/writeFile", params).await, json!({}));
            assert_eq!(fs::read(&path).unwrap(), content);
            let read = client.call("fs/readFile", about(&path, &json!({}))).await;
            assert_eq!(decoded(&read["dataBase64"]), content);
            assert_eq!(read.as_object().unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn an_existing_file_keeps_its_other_names_and_its_mode() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "old");
    let other = server.folder().join("b");
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let params = about(&path, &json!({"dataBase64": encoded("new")}));
    client.call("fs/writeFile", params).await;
    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
    assert_eq!(fs::read(&other).unwrap(), b"new");
}

#[tokio::test]
async fn no_base64_is_refused_and_nothing_is_written() {
    let (server, client) = ready().await;
    let path = server.folder().join("a");
    let params = about(&path, &json!({"dataBase64": "a!"}));
    let words = "fs/writeFile requires valid base64 dataBase64: ";
    let (code, message) = refused(&client, "fs/writeFile", params).await;
    assert_eq!(code, -32600);
    assert!(
        message.starts_with(words) && message.len() > words.len(),
        "{message}"
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_at_once() {
    let (server, client) = ready().await;
    let words = "path is not a regular file";
    let pipe = fifo(&server, "fifo");
    for path in [pipe.as_path(), "/dev/null".as_ref(), "/dev/zero".as_ref()] {
        let answer = refused(&client, "fs/readFile", about(path, &json!({}))).await;
        assert_eq!(answer, invalid(words));
        let params = about(path, &json!({"dataBase64": encoded("x")}));
        assert_eq!(
            refused(&client, "fs/writeFile", params).await,
            invalid(words)
        );
    }
    let folder = server.folder();
    let answer = refused(&client, "fs/readFile", about(folder, &json!({}))).await;
    assert_eq!(answer, failed("Is a directory (os error 21)"));
}

#[tokio::test]
async fn what_is_missing_is_missing() {
    let (server, client) = ready().await;
    let path = server.folder().join("no");
    let answer = refused(&client, "fs/readFile", about(&path, &json!({}))).await;
    assert_eq!(answer, missing());
    let params = about(&path.join("no"), &json!({"dataBase64": ""}));
    assert_eq!(refused(&client, "fs/writeFile", params).await, missing());
}

#[tokio::test]
async fn links_are_followed_unless_they_are_not() {
    let (server, client) = ready().await;
    // The folder of tests may itself be behind a link.
    let real = server.folder().canonicalize().unwrap();
    let path = file(&server, "real/a", "hello");
    link(&server, "link", "real");
    let through = server.folder().join("link/a");
    let read = client
        .call("fs/readFile", about(&through, &json!({})))
        .await;
    assert_eq!(decoded(&read["dataBase64"]), b"hello");
    let words = "path contains a symbolic link";
    let no_links = json!({"followSymlinks": false});
    let last = link(&server, "last", &path);
    for path in [real.join("link/a"), last] {
        let answer = refused(&client, "fs/readFile", about(&path, &no_links)).await;
        assert_eq!(answer, invalid(words));
        let params = about(&path, &json!({"followSymlinks": false, "dataBase64": ""}));
        assert_eq!(
            refused(&client, "fs/writeFile", params).await,
            invalid(words)
        );
    }
    let params = about(&real.join("real/a"), &no_links);
    let read = client.call("fs/readFile", params).await;
    assert_eq!(decoded(&read["dataBase64"]), b"hello");
    assert_eq!(fs::read(&path).unwrap(), b"hello");
}

#[tokio::test]
async fn requests_about_a_path_take_effect_as_they_were_sent() {
    let (server, client) = ready().await;
    let path = server.folder().join("a");
    let mut reads = Vec::new();
    for round in 0..50 {
        let content = format!("round {round}");
        let write = json!({"path": uri(&path), "dataBase64": encoded(&content)});
        client.request("fs/writeFile", write).await;
        let read = client
            .request("fs/readFile", about(&path, &json!({})))
            .await;
        reads.push((read, content));
    }
    for (read, content) in reads {
        let answer = client.answer(read).await.unwrap();
        assert_eq!(decoded(&answer["dataBase64"]), content.as_bytes());
    }
}

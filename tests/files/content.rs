//! Tests `fs/readFile` and `fs/writeFile`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use super::{decoded, encoded, error_of, fifo, file, invalid, link, not_found, params_for, uri};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn written_content_is_read_back() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        for content in [&b""[..], b"hello", b"\0\xff\n", &[7; 300_000]] {
            let path = server.dir().join("file");
            let params = params_for(&path, &json!({"dataBase64": encoded(content)}));
            assert_eq!(client.call("fs/writeFile", params).await, json!({}));
            assert_eq!(fs::read(&path).unwrap(), content);
            let read = client
                .call("fs/readFile", params_for(&path, &json!({})))
                .await;
            assert_eq!(decoded(&read["dataBase64"]), content);
            assert_eq!(read.as_object().unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn existing_file_keeps_links_and_mode() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "old");
    let other = server.dir().join("b");
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let params = params_for(&path, &json!({"dataBase64": encoded("new")}));
    client.call("fs/writeFile", params).await;
    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
    assert_eq!(fs::read(&other).unwrap(), b"new");
}

#[tokio::test]
async fn invalid_base64_writes_nothing() {
    let (server, client) = ready().await;
    let path = server.dir().join("a");
    let params = params_for(&path, &json!({"dataBase64": "a!"}));
    let error_text = "fs/writeFile requires valid base64 dataBase64: ";
    let (code, message) = error_of(&client, "fs/writeFile", params).await;
    assert_eq!(code, -32600);
    assert!(
        message.starts_with(error_text) && message.len() > error_text.len(),
        "{message}"
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn irregular_files_are_rejected_at_once() {
    let (server, client) = ready().await;
    let pipe = fifo(&server, "fifo");
    for path in [pipe.as_path(), "/dev/null".as_ref(), "/dev/zero".as_ref()] {
        let error_text = &format!("path `{}` is not a file", path.display());
        let error = error_of(&client, "fs/readFile", params_for(path, &json!({}))).await;
        assert_eq!(error, invalid(error_text));
        let params = params_for(path, &json!({"dataBase64": encoded("x")}));
        assert_eq!(
            error_of(&client, "fs/writeFile", params).await,
            invalid(error_text)
        );
    }
    let dir = server.dir();
    let error = error_of(&client, "fs/readFile", params_for(dir, &json!({}))).await;
    let text = format!("path `{}` is not a file", dir.display());
    assert_eq!(error, invalid(&text));
}

#[tokio::test]
async fn missing_file_is_reported() {
    let (server, client) = ready().await;
    let path = server.dir().join("no");
    let error = error_of(&client, "fs/readFile", params_for(&path, &json!({}))).await;
    assert_eq!(error, not_found());
    let params = params_for(&path.join("no"), &json!({"dataBase64": ""}));
    assert_eq!(error_of(&client, "fs/writeFile", params).await, not_found());
}

#[tokio::test]
async fn links_are_followed_unless_disabled() {
    let (server, client) = ready().await;
    // The temporary directory may itself be behind a symbolic link.
    let real = server.dir().canonicalize().unwrap();
    let path = file(&server, "real/a", "hello");
    link(&server, "link", "real");
    let through = server.dir().join("link/a");
    let read = client
        .call("fs/readFile", params_for(&through, &json!({})))
        .await;
    assert_eq!(decoded(&read["dataBase64"]), b"hello");
    let error_text = "path contains a symbolic link";
    let no_links = json!({"followSymlinks": false});
    let last = link(&server, "last", &path);
    for path in [real.join("link/a"), last] {
        let error = error_of(&client, "fs/readFile", params_for(&path, &no_links)).await;
        assert_eq!(error, invalid(error_text));
        let params = params_for(&path, &json!({"followSymlinks": false, "dataBase64": ""}));
        assert_eq!(
            error_of(&client, "fs/writeFile", params).await,
            invalid(error_text)
        );
    }
    let params = params_for(&real.join("real/a"), &no_links);
    let read = client.call("fs/readFile", params).await;
    assert_eq!(decoded(&read["dataBase64"]), b"hello");
    assert_eq!(fs::read(&path).unwrap(), b"hello");
}

#[tokio::test]
async fn requests_for_one_path_keep_their_order() {
    let (server, client) = ready().await;
    let path = server.dir().join("a");
    let mut reads = Vec::new();
    for round in 0..50 {
        let content = format!("round {round}");
        let write = json!({"path": uri(&path), "dataBase64": encoded(&content)});
        client.request("fs/writeFile", write).await;
        let read = client
            .request("fs/readFile", params_for(&path, &json!({})))
            .await;
        reads.push((read, content));
    }
    for (read, content) in reads {
        let response = client.response(read).await.unwrap();
        assert_eq!(decoded(&response["dataBase64"]), content.as_bytes());
    }
}

//! Tests large files.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::{decoded, encoded, error_of, invalid, params_for, uri};
use crate::ready;

const MIB: u64 = 1024 * 1024;

/// Creates a sparse file of this size.
fn zeros(path: &Path, bytes: u64) {
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(bytes).expect("a length");
}

#[tokio::test]
async fn file_above_half_a_gigabyte_is_rejected() {
    let (server, client) = ready().await;
    let path = server.dir().join("large");
    zeros(&path, 512 * MIB + 1);
    let error = error_of(&client, "fs/readFile", params_for(&path, &json!({}))).await;
    assert_eq!(error, invalid("file is larger than 536870912 bytes"));
    let open = json!({"handleId": "h", "path": uri(&path)});
    client.call("fs/open", open).await;
    let last = json!({"handleId": "h", "offset": 512 * MIB, "len": 2});
    let block = client.call("fs/readBlock", last).await;
    assert_eq!(
        (decoded(&block["chunk"]), &block["eof"]),
        (vec![0], &json!(true))
    );
}

#[tokio::test]
async fn large_reads_are_sent_one_at_a_time() {
    let (server, client) = ready().await;
    let mut reads = Vec::new();
    for number in 0..4_u8 {
        let path = server.dir().join(number.to_string());
        std::fs::write(&path, vec![number; 17 << 20]).unwrap();
        reads.push(
            client
                .request("fs/readFile", params_for(&path, &json!({})))
                .await,
        );
    }
    client.check_alive().await;
    for (number, id) in reads.into_iter().enumerate() {
        let response = client.response(id).await.unwrap();
        let bytes = decoded(&response["dataBase64"]);
        assert!(bytes.len() == 17 << 20 && bytes.iter().all(|byte| usize::from(*byte) == number));
    }
    let peak = server.stats().peak_rss_kib();
    assert!(peak < 128 * 1024, "the server took {peak} KiB");
}

#[tokio::test]
async fn large_write_succeeds() {
    let (server, client) = ready().await;
    let content: Vec<u8> = (0..20 << 20_u32).map(|at: u32| (at % 251) as u8).collect();
    let path = server.dir().join("large");
    let params = params_for(&path, &json!({"dataBase64": encoded(&content)}));
    client.call("fs/writeFile", params).await;
    assert!(std::fs::read(&path).unwrap() == content);
}

/// A server on stdio whose output is scanned as bytes and not kept, because it is larger than a
/// test should hold in memory.
struct RawServer {
    child: Child,
}

impl RawServer {
    fn send(&mut self, message: &serde_json::Value) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{message}").expect("stdin is open");
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        // The server ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn half_a_gigabyte_is_read_in_one_response() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("large");
    zeros(&path, 512 * MIB);
    let child = Command::new(crate::outpost().binary())
        .args(["serve", "--listen", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a server");
    let mut server = RawServer { child };
    let mut output =
        BufReader::with_capacity(1 << 20, server.child.stdout.take().expect("its output"));
    server.send(&json!({"id": 1, "method": "initialize", "params": {"clientName": "bare"}}));
    output.read_line(&mut String::new()).expect("a response");
    server.send(&json!({"method": "initialized"}));
    server.send(&json!({"id": 2, "method": "fs/readFile", "params": {"path": uri(&path)}}));
    let mut head = vec![0; br#"{"id":2,"result":{"dataBase64":""#.len()];
    output.read_exact(&mut head).expect("a response");
    assert_eq!(head, br#"{"id":2,"result":{"dataBase64":""#);
    let mut symbols = 0_u64;
    loop {
        let bytes = output.fill_buf().expect("more output");
        assert!(!bytes.is_empty(), "the server ended");
        let plain = bytes.iter().take_while(|byte| **byte == b'A').count();
        let all = bytes.len();
        output.consume(plain);
        symbols += plain as u64;
        if plain < all {
            break;
        }
    }
    let mut end = String::new();
    output.read_line(&mut end).expect("the end of it");
    assert_eq!(end, "=\"}}\n");
    assert_eq!(symbols + 1, (512 * MIB).div_ceil(3) * 4);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    assert!(
        peak < 48 * 1024,
        "a few blocks, and little else: {peak} KiB"
    );
}

//! Files that are large.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::{about, decoded, encoded, invalid, refused, uri};
use crate::ready;

const MIB: u64 = 1024 * 1024;

/// A file of so many zeros, which take no room.
fn zeros(path: &Path, bytes: u64) {
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(bytes).expect("a length");
}

#[tokio::test]
async fn one_byte_over_half_a_gigabyte_is_too_much() {
    let (server, client) = ready().await;
    let path = server.folder().join("large");
    zeros(&path, 512 * MIB + 1);
    let answer = refused(&client, "fs/readFile", about(&path, &json!({}))).await;
    assert_eq!(answer, invalid("file is larger than 536870912 bytes"));
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
async fn several_large_files_at_once_come_one_after_the_other() {
    let (server, client) = ready().await;
    let mut reads = Vec::new();
    for number in 0..4_u8 {
        let path = server.folder().join(number.to_string());
        std::fs::write(&path, vec![number; 17 << 20]).unwrap();
        reads.push(
            client
                .request("fs/readFile", about(&path, &json!({})))
                .await,
        );
    }
    client.is_alive().await;
    for (number, id) in reads.into_iter().enumerate() {
        let answer = client.answer(id).await.unwrap();
        let bytes = decoded(&answer["dataBase64"]);
        assert!(bytes.len() == 17 << 20 && bytes.iter().all(|byte| usize::from(*byte) == number));
    }
    let peak = server.vitals().peak_rss_kib();
    assert!(peak < 128 * 1024, "the server took {peak} KiB");
}

#[tokio::test]
async fn a_large_write() {
    let (server, client) = ready().await;
    let content: Vec<u8> = (0..20 << 20_u32).map(|at: u32| (at % 251) as u8).collect();
    let path = server.folder().join("large");
    let params = about(&path, &json!({"dataBase64": encoded(&content)}));
    client.call("fs/writeFile", params).await;
    assert!(std::fs::read(&path).unwrap() == content);
}

/// A server on stdio whose output is looked at as bytes: what it says here would fill the memory of
/// a test that keeps it.
struct Bare {
    child: Child,
}

impl Bare {
    fn say(&mut self, message: &serde_json::Value) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{message}").expect("it listens");
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn half_a_gigabyte_in_one_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large");
    zeros(&path, 512 * MIB);
    let child = Command::new(crate::outpost().binary())
        .args(["serve", "--listen", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a server");
    let mut bare = Bare { child };
    let mut output =
        BufReader::with_capacity(1 << 20, bare.child.stdout.take().expect("its output"));
    bare.say(&json!({"id": 1, "method": "initialize", "params": {"clientName": "bare"}}));
    output.read_line(&mut String::new()).expect("an answer");
    bare.say(&json!({"method": "initialized"}));
    bare.say(&json!({"id": 2, "method": "fs/readFile", "params": {"path": uri(&path)}}));
    let mut head = vec![0; br#"{"id":2,"result":{"dataBase64":""#.len()];
    output.read_exact(&mut head).expect("an answer");
    assert_eq!(head, br#"{"id":2,"result":{"dataBase64":""#);
    let mut symbols = 0_u64;
    loop {
        let bytes = output.fill_buf().expect("more of it");
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
    let status = std::fs::read_to_string(format!("/proc/{}/status", bare.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    assert!(
        peak < (683 + 48) * 1024,
        "the answer once, and little else: {peak} KiB"
    );
}

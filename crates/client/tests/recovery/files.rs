//! Reading files when the connection is lost.

use std::{sync::Arc, time::Duration};

use outpost_client::{Executor as _, FileErrorKind, FileReader, RemoteExecutor};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::sim::{Sim, SimConnection, full_server, old_server, soon};

pub(crate) const BLOCK: usize = 256 * 1024;

fn metadata(size: usize, modified: i64) -> Value {
    json!({"isDirectory": false, "isFile": true, "isSymlink": false,
           "size": size, "createdAtMs": 1, "modifiedAtMs": modified})
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    outpost_protocol::base64::encode_into(&mut text, bytes);
    String::from_utf8(text).expect("base64 is text")
}

/// The content at an offset; every block differs.
pub(crate) fn content(offset: usize, len: usize) -> Vec<u8> {
    (offset..offset + len)
        .map(|at| (at / 1000 % 251) as u8)
        .collect()
}

/// A file of the simulated server.
pub(crate) struct SimFile {
    pub(crate) size: usize,
    pub(crate) modified: i64,
}

impl SimFile {
    /// The response to a request about the file.
    pub(crate) async fn respond(&self, connection: &mut SimConnection, request: &Value) {
        let params = &request["params"];
        let result = match request["method"].as_str().unwrap_or_default() {
            "fs/getMetadata" => metadata(self.size, self.modified),
            "fs/open" => json!({"handleId": params["handleId"]}),
            "fs/readBlock" => {
                let number = |name: &str| params[name].as_u64().unwrap_or(0) as usize;
                let (offset, len) = (number("offset"), number("len"));
                let there = self.size.saturating_sub(offset).min(len);
                json!({"chunk": encoded(&content(offset, there)), "eof": there < len})
            }
            _ => json!({}),
        };
        connection.respond(request, result).await;
    }

    /// Responds to the next `count` requests. Returns their methods.
    async fn serve(&self, connection: &mut SimConnection, requests: usize) -> Vec<String> {
        let before = connection.methods.len();
        for _ in 0..requests {
            let request = connection.next().await;
            self.respond(connection, &request).await;
        }
        connection.methods[before..].to_vec()
    }
}

pub(crate) async fn opened(
    remote: &RemoteExecutor,
    connection: &mut SimConnection,
    file: &SimFile,
) -> FileReader {
    let files = remote.files();
    let (reader, asked) = tokio::join!(files.open("/f"), file.serve(connection, 2));
    assert_eq!(asked, ["fs/getMetadata", "fs/open"]);
    reader.expect("it opens")
}

/// Receives requests without responding.
pub(crate) async fn taken(connection: &mut SimConnection, requests: usize) -> Vec<Value> {
    let mut taken = Vec::new();
    for _ in 0..requests {
        taken.push(connection.next().await);
    }
    taken
}

pub(crate) fn read_on(mut reader: FileReader) -> tokio::task::JoinHandle<std::io::Result<Vec<u8>>> {
    tokio::spawn(async move {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await?;
        Ok(bytes)
    })
}

#[tokio::test(start_paused = true)]
async fn blocks_are_requested_ahead_and_may_arrive_in_any_order() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let file = SimFile {
        size: 3 * BLOCK + 10,
        modified: 1,
    };
    let reader = opened(&remote, &mut connection, &file).await;
    let reading = read_on(reader);
    // Four blocks and the metadata are requested before any response.
    let mut requests = taken(&mut connection, 5).await;
    requests.reverse();
    for request in &requests {
        file.respond(&mut connection, request).await;
    }
    let bytes = soon("all of it", reading).await.unwrap().unwrap();
    assert!(bytes == content(0, file.size), "{} bytes came", bytes.len());
    let close = connection.expect_request("fs/close").await;
    assert_eq!(
        close["params"]["handleId"],
        requests[0]["params"]["handleId"]
    );
}

#[tokio::test(start_paused = true)]
async fn slow_reader_requests_a_block_for_each_that_it_takes() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let file = SimFile {
        size: 20 * BLOCK,
        modified: 1,
    };
    let mut reader = opened(&remote, &mut connection, &file).await;
    // Eight blocks and the metadata.
    let (taken, _) = tokio::join!(reader.next_bytes(), file.serve(&mut connection, 9));
    assert!(taken.unwrap() == content(0, BLOCK));
    for number in 1..5 {
        // The reader is not polled meanwhile.
        let request = connection.expect_request("fs/readBlock").await;
        assert_eq!(request["params"]["offset"], (number + 7) * BLOCK);
        let taken = reader.next_bytes().await.unwrap();
        assert!(taken == content(number * BLOCK, BLOCK), "block {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn end_at_a_block_boundary_is_requested() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let file = SimFile {
        size: BLOCK,
        modified: 1,
    };
    let reader = opened(&remote, &mut connection, &file).await;
    let reading = read_on(reader);
    file.serve(&mut connection, 3).await;
    let bytes = soon("all of it", reading).await.unwrap().unwrap();
    assert_eq!(bytes.len(), BLOCK);
}

#[tokio::test(start_paused = true)]
async fn seek_continues_at_another_offset() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let file = SimFile {
        size: 2 * BLOCK,
        modified: 1,
    };
    let mut reader = opened(&remote, &mut connection, &file).await;
    let serving = tokio::spawn(async move {
        loop {
            let request = connection.next().await;
            file.respond(&mut connection, &request).await;
        }
    });
    let mut piece = [0; 100];
    reader.read_exact(&mut piece).await.unwrap();
    reader.seek_to(2 * BLOCK as u64 - 10);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, content(2 * BLOCK - 10, 10));
    assert_eq!(reader.position(), 2 * BLOCK as u64);
    let middle = reader.read_at(5000, 7).await.unwrap();
    assert_eq!(middle, content(5000, 7));
    reader.seek_to(u64::MAX);
    assert_eq!(reader.read(&mut piece).await.unwrap(), 0);
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn unchanged_file_is_read_on_after_a_cut() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let file = SimFile {
        size: 20 * BLOCK + 1,
        modified: 1,
    };
    let reader = opened(&remote, &mut connection, &file).await;
    let reading = read_on(reader);
    // Respond to the first window and the metadata request, then cut the connection.
    file.serve(&mut connection, 9).await;
    taken(&mut connection, 3).await;
    drop(connection);
    let (mut connection, _) = sim.resumed(full_server()).await;
    let serving = tokio::spawn(async move {
        let asked = file.serve(&mut connection, 3).await;
        assert_eq!(asked, ["fs/open", "fs/getMetadata", "fs/readBlock"]);
        loop {
            let request = connection.next().await;
            file.respond(&mut connection, &request).await;
        }
    });
    let bytes = soon("all of it", reading).await.unwrap().unwrap();
    assert!(
        bytes == content(0, 20 * BLOCK + 1),
        "{} bytes came",
        bytes.len()
    );
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn changed_file_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let size = 20 * BLOCK;
    let reader = opened(&remote, &mut connection, &SimFile { size, modified: 1 }).await;
    let reading = read_on(reader);
    SimFile { size, modified: 1 }
        .serve(&mut connection, 9)
        .await;
    drop(connection);
    let (mut connection, _) = sim.resumed(full_server()).await;
    let asked = SimFile { size, modified: 2 }
        .serve(&mut connection, 2)
        .await;
    assert_eq!(asked, ["fs/open", "fs/getMetadata"]);
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
    // The reopened file is closed.
    connection.expect_request("fs/close").await;
}

#[tokio::test(start_paused = true)]
async fn removed_file_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let file = SimFile {
        size: 20 * BLOCK,
        modified: 1,
    };
    let reader = opened(&remote, &mut connection, &file).await;
    let reading = read_on(reader);
    file.serve(&mut connection, 9).await;
    drop(connection);
    let (mut connection, _) = sim.resumed(full_server()).await;
    let open = connection.expect_request("fs/open").await;
    let words = "No such file or directory (os error 2)";
    connection.reject(&open, -32004, words).await;
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(start_paused = true)]
async fn failed_reopen_is_tried_again_unless_the_file_has_changed() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let mut file = SimFile {
        size: 100,
        modified: 1,
    };
    let reader = opened(&remote, &mut connection, &file).await;
    let (read, _) = tokio::join!(reader.read_at(0, 10), file.serve(&mut connection, 2));
    assert_eq!(read.unwrap(), content(0, 10));
    drop(connection);

    let (mut connection, _) = sim.resumed(full_server()).await;
    let refusing = async {
        let open = connection.expect_request("fs/open").await;
        let words = "No such file or directory (os error 2)";
        connection.reject(&open, -32004, words).await;
    };
    let (read, ()) = tokio::join!(reader.read_at(0, 10), refusing);
    assert_eq!(read.unwrap_err().kind(), FileErrorKind::Changed);
    let (read, asked) = tokio::join!(reader.read_at(0, 10), file.serve(&mut connection, 3));
    assert_eq!(asked, ["fs/open", "fs/getMetadata", "fs/readBlock"]);
    assert_eq!(read.unwrap(), content(0, 10));
    drop(connection);

    let (mut connection, _) = sim.resumed(full_server()).await;
    file.modified = 2;
    let (read, _) = tokio::join!(reader.read_at(0, 10), file.serve(&mut connection, 2));
    assert_eq!(read.unwrap_err().kind(), FileErrorKind::Changed);
    connection.expect_request("fs/close").await;
    let read = reader.read_at(0, 10).await;
    assert_eq!(read.unwrap_err().kind(), FileErrorKind::Changed);
    connection.expect_silence(Duration::from_secs(1)).await;
}

/// A file replaced between the metadata request and the open cannot be identified, so it is not
/// opened again after a cut.
#[tokio::test(start_paused = true)]
async fn file_changed_during_open_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let size = 20 * BLOCK;
    let reader = opened(&remote, &mut connection, &SimFile { size, modified: 1 }).await;
    let reading = read_on(reader);
    SimFile { size, modified: 2 }
        .serve(&mut connection, 9)
        .await;
    drop(connection);
    let (_connection, _) = sim.resumed(full_server()).await;
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_open_closes_the_file() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let file = SimFile {
        size: 1,
        modified: 1,
    };
    let files = remote.files();
    let opening = tokio::spawn(async move { files.open("/f").await.map(|_| ()) });
    file.serve(&mut connection, 1).await;
    let open = connection.expect_request("fs/open").await;
    opening.abort();
    // A close would overtake the open, so it is sent after the response.
    connection.expect_silence(Duration::from_secs(1)).await;
    file.respond(&mut connection, &open).await;
    let close = connection.expect_request("fs/close").await;
    assert_eq!(close["params"]["handleId"], open["params"]["handleId"]);
}

#[tokio::test(start_paused = true)]
async fn read_only_calls_are_retried_and_changes_are_not() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let files = Arc::new(remote.files());
    let asking = tokio::spawn({
        let files = Arc::clone(&files);
        async move { files.metadata("/f").await }
    });
    connection.expect_request("fs/getMetadata").await;
    let changing = tokio::spawn(async move { files.remove("/f", Default::default()).await });
    connection.expect_request("fs/remove").await;
    drop(connection);
    let (mut connection, _) = sim.resumed(full_server()).await;
    let again = connection.expect_request("fs/getMetadata").await;
    connection.respond(&again, metadata(7, 1)).await;
    let found = soon("the answer", asking).await.unwrap().unwrap();
    assert_eq!(found.size, 7);
    let error = soon("the error", changing).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unavailable);
    connection.expect_silence(Duration::from_secs(1)).await;
}

pub(crate) fn kind_of(error: &std::io::Error) -> FileErrorKind {
    let error = error.get_ref().expect("it has a cause");
    let error = error.downcast_ref::<outpost_client::FileError>();
    error.expect("it is about a file").kind()
}

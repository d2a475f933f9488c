//! Files that are read, when the connection is lost.

use std::{sync::Arc, time::Duration};

use outpost_client::{FileErrorKind, FileReader, Place as _, Remote};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::sim::{Sim, SimLine, capable, released, soon};

pub(crate) const BLOCK: usize = 256 * 1024;

fn described(size: usize, modified: i64) -> Value {
    json!({"isDirectory": false, "isFile": true, "isSymlink": false,
           "size": size, "createdAtMs": 1, "modifiedAtMs": modified})
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    outpost_protocol::base64::encode_into(&mut text, bytes);
    String::from_utf8(text).expect("base64 is text")
}

/// What is in the file at an offset: no two blocks are alike.
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
    /// Answers whatever is asked about it.
    pub(crate) async fn answer(&self, line: &mut SimLine, request: &Value) {
        let params = &request["params"];
        let result = match request["method"].as_str().unwrap_or_default() {
            "fs/getMetadata" => described(self.size, self.modified),
            "fs/open" => json!({"handleId": params["handleId"]}),
            "fs/readBlock" => {
                let number = |name: &str| params[name].as_u64().unwrap_or(0) as usize;
                let (offset, len) = (number("offset"), number("len"));
                let there = self.size.saturating_sub(offset).min(len);
                json!({"chunk": encoded(&content(offset, there)), "eof": there < len})
            }
            _ => json!({}),
        };
        line.answer(request, result).await;
    }

    /// Answers the next requests, so many of them; gives their methods.
    async fn serve(&self, line: &mut SimLine, requests: usize) -> Vec<String> {
        let before = line.asked.len();
        for _ in 0..requests {
            let request = line.next().await;
            self.answer(line, &request).await;
        }
        line.asked[before..].to_vec()
    }
}

pub(crate) async fn opened(remote: &Remote, line: &mut SimLine, file: &SimFile) -> FileReader {
    let files = remote.files();
    let (reader, asked) = tokio::join!(files.open("/f"), file.serve(line, 2));
    assert_eq!(asked, ["fs/getMetadata", "fs/open"]);
    reader.expect("it opens")
}

/// Takes a number of requests without answering them.
pub(crate) async fn taken(line: &mut SimLine, requests: usize) -> Vec<Value> {
    let mut taken = Vec::new();
    for _ in 0..requests {
        taken.push(line.next().await);
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
async fn blocks_are_asked_for_ahead_and_may_come_in_any_order() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let file = SimFile {
        size: 3 * BLOCK + 10,
        modified: 1,
    };
    let reader = opened(&remote, &mut line, &file).await;
    let reading = read_on(reader);
    // Four blocks and a look at what was opened, before anything is answered.
    let mut requests = taken(&mut line, 5).await;
    requests.reverse();
    for request in &requests {
        file.answer(&mut line, request).await;
    }
    let bytes = soon("all of it", reading).await.unwrap().unwrap();
    assert!(bytes == content(0, file.size), "{} bytes came", bytes.len());
    let close = line.asked_for("fs/close").await;
    assert_eq!(
        close["params"]["handleId"],
        requests[0]["params"]["handleId"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_an_end_of_a_block_is_asked_for() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let file = SimFile {
        size: BLOCK,
        modified: 1,
    };
    let reader = opened(&remote, &mut line, &file).await;
    let reading = read_on(reader);
    file.serve(&mut line, 3).await;
    let bytes = soon("all of it", reading).await.unwrap().unwrap();
    assert_eq!(bytes.len(), BLOCK);
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_elsewhere() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let file = SimFile {
        size: 2 * BLOCK,
        modified: 1,
    };
    let mut reader = opened(&remote, &mut line, &file).await;
    let serving = tokio::spawn(async move {
        loop {
            let request = line.next().await;
            file.answer(&mut line, &request).await;
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
async fn a_file_that_is_the_same_is_read_on_after_a_cut() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let file = SimFile {
        size: 20 * BLOCK + 1,
        modified: 1,
    };
    let reader = opened(&remote, &mut line, &file).await;
    let reading = read_on(reader);
    // The first window is answered, with the look at what was opened; then it is cut.
    file.serve(&mut line, 9).await;
    taken(&mut line, 3).await;
    drop(line);
    let (mut line, _) = sim.resumed(capable()).await;
    let serving = tokio::spawn(async move {
        let asked = file.serve(&mut line, 3).await;
        assert_eq!(asked, ["fs/open", "fs/getMetadata", "fs/readBlock"]);
        loop {
            let request = line.next().await;
            file.answer(&mut line, &request).await;
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
async fn a_file_that_has_changed_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let size = 20 * BLOCK;
    let reader = opened(&remote, &mut line, &SimFile { size, modified: 1 }).await;
    let reading = read_on(reader);
    SimFile { size, modified: 1 }.serve(&mut line, 9).await;
    drop(line);
    let (mut line, _) = sim.resumed(capable()).await;
    let asked = SimFile { size, modified: 2 }.serve(&mut line, 2).await;
    assert_eq!(asked, ["fs/open", "fs/getMetadata"]);
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
    // What was opened in vain is closed.
    line.asked_for("fs/close").await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_gone_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let file = SimFile {
        size: 20 * BLOCK,
        modified: 1,
    };
    let reader = opened(&remote, &mut line, &file).await;
    let reading = read_on(reader);
    file.serve(&mut line, 9).await;
    drop(line);
    let (mut line, _) = sim.resumed(capable()).await;
    let open = line.asked_for("fs/open").await;
    let words = "No such file or directory (os error 2)";
    line.refuse(&open, -32004, words).await;
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// What was replaced between the look and the opening can't be told from what was
/// opened, so after a cut it isn't opened again.
#[tokio::test(start_paused = true)]
async fn a_file_that_changed_as_it_was_opened_is_not_read_on() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let size = 20 * BLOCK;
    let reader = opened(&remote, &mut line, &SimFile { size, modified: 1 }).await;
    let reading = read_on(reader);
    SimFile { size, modified: 2 }.serve(&mut line, 9).await;
    drop(line);
    let (_line, _) = sim.resumed(capable()).await;
    let error = soon("an error", reading).await.unwrap().unwrap_err();
    assert_eq!(kind_of(&error), FileErrorKind::Changed, "{error}");
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_for_a_file_leaves_none_open() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let file = SimFile {
        size: 1,
        modified: 1,
    };
    let files = remote.files();
    let opening = tokio::spawn(async move { files.open("/f").await.map(|_| ()) });
    file.serve(&mut line, 1).await;
    let open = line.asked_for("fs/open").await;
    opening.abort();
    // A close would overtake the opening, so it waits for the answer.
    line.is_quiet_for(Duration::from_secs(1)).await;
    file.answer(&mut line, &open).await;
    let close = line.asked_for("fs/close").await;
    assert_eq!(close["params"]["handleId"], open["params"]["handleId"]);
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_again_and_changes_are_not() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let files = Arc::new(remote.files());
    let asking = tokio::spawn({
        let files = Arc::clone(&files);
        async move { files.metadata("/f").await }
    });
    line.asked_for("fs/getMetadata").await;
    let changing = tokio::spawn(async move { files.remove("/f", Default::default()).await });
    line.asked_for("fs/remove").await;
    drop(line);
    let (mut line, _) = sim.resumed(capable()).await;
    let again = line.asked_for("fs/getMetadata").await;
    line.answer(&again, described(7, 1)).await;
    let found = soon("the answer", asking).await.unwrap().unwrap();
    assert_eq!(found.size, 7);
    let error = soon("the error", changing).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unavailable);
    line.is_quiet_for(Duration::from_secs(1)).await;
}

pub(crate) fn kind_of(error: &std::io::Error) -> FileErrorKind {
    let error = error.get_ref().expect("it has a cause");
    let error = error.downcast_ref::<outpost_client::FileError>();
    error.expect("it is about a file").kind()
}

//! Servers that send invalid responses about files.

use outpost_client::{Executor as _, FileErrorKind};
use serde_json::{Value, json};

use crate::{
    files::{BLOCK, SimFile, encoded, kind_of, opened, read_on},
    sim::{Sim, SimConnection, old_server, soon},
};

/// Answers the next listing with these names.
async fn list(connection: &mut SimConnection, names: &[&str]) {
    let asked = connection.expect_request("fs/readDirectory").await;
    let entries: Vec<Value> = names
        .iter()
        .map(|name| json!({"fileName": name, "isDirectory": false, "isFile": true}))
        .collect();
    connection
        .respond(&asked, json!({"entries": entries}))
        .await;
}

/// A copy joins entry names to a local path.
#[tokio::test(start_paused = true)]
async fn names_outside_the_directory_are_rejected() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let files = remote.files();
    for name in ["", ".", "..", "/etc/cron.d/x", "../x", "a/b", "a/", "a\0b"] {
        let listing = files.read_directory("/d");
        let names = ["fine", name];
        let (listed, ()) = tokio::join!(listing, list(&mut connection, &names));
        let error = listed.expect_err(name);
        assert_eq!(error.kind(), FileErrorKind::Failed, "{error}");
        assert!(error.message().contains(&format!("{name:?}")), "{error}");
    }
    let names = ["...", "..a", "a\\b", "~", " "];
    let (listed, ()) = tokio::join!(files.read_directory("/d"), list(&mut connection, &names));
    let listed = listed.unwrap();
    let listed: Vec<_> = listed.iter().map(|entry| &*entry.file_name).collect();
    assert_eq!(listed, names);
}

/// The next block begins where this one should have ended.
#[tokio::test(start_paused = true)]
async fn block_of_wrong_length_is_an_error() {
    for (len, eof) in [
        (BLOCK - 1, false),
        (BLOCK + 1, false),
        (BLOCK + 1, true),
        (0, false),
    ] {
        let mut sim = Sim::new();
        let (remote, mut connection) = sim.connect(old_server()).await;
        let file = SimFile {
            size: 3 * BLOCK,
            modified: 1,
        };
        let reader = opened(&remote, &mut connection, &file).await;
        let looking = reader.read_at(0, BLOCK as u64);
        let reading = read_on(reader);
        let looking = tokio::spawn(looking);
        let serving = tokio::spawn(async move {
            loop {
                let request = connection.next().await;
                match request["method"] == "fs/readBlock" && request["params"]["offset"] == 0 {
                    true => {
                        let block = json!({"chunk": encoded(&vec![b'x'; len]), "eof": eof});
                        connection.respond(&request, block).await;
                    }
                    false => file.respond(&mut connection, &request).await,
                }
            }
        });
        let read = soon("the end", reading).await.unwrap();
        let error = read.map(|bytes| bytes.len()).expect_err("no content");
        assert_eq!(kind_of(&error), FileErrorKind::Failed, "{error}");
        let looked = soon("a look", looking).await.unwrap();
        looked.map(|bytes| bytes.len()).expect_err("no content");
        serving.abort();
    }
}

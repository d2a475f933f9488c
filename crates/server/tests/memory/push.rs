//! Push delivery when a connection is lost in the middle of a write.

use std::{collections::BTreeMap, fs::OpenOptions, io::Write as _, time::Duration};

use outpost_server::{Peer as PeerKind, Settings};
use serde_json::{Value, json};

use crate::peer::{Peer, server};

/// Collects events by number. An event that comes again must be the same.
#[derive(Default)]
struct Events {
    by_seq: BTreeMap<u64, Value>,
    doubled: usize,
    closed: bool,
}

impl Events {
    fn take(&mut self, message: Value) {
        let Some(seq) = message["params"]["seq"].as_u64() else {
            return;
        };
        self.closed |= message["method"] == "process/closed";
        if let Some(known) = self.by_seq.get(&seq) {
            assert_eq!(*known, message, "the same event");
            self.doubled += 1;
        }
        self.by_seq.insert(seq, message);
    }
}

/// Lines of the process, each an event.
const LINES: u64 = 700;
/// More events than the connection's buffer holds, and fewer than the buffer and the next write.
const RECEIVED: usize = 330;

#[tokio::test]
async fn events_of_an_interrupted_write_come_again() {
    let interrupted = interrupt_a_write();
    let events = tokio::time::timeout(Duration::from_secs(60), interrupted).await;
    let events = events.expect("the events arrive");
    let last = *events.by_seq.keys().next_back().expect("events");
    assert_eq!(events.by_seq.len() as u64, last, "none is lost");
    assert!(
        events.doubled > 50,
        "the write was interrupted: {}",
        events.doubled
    );
}

async fn interrupt_a_write() -> Events {
    let server = server(Settings::default());
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("lines");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo runs").success());
    // Opened for reading too, so that it does not wait for a reader.
    let lines = OpenOptions::new().read(true).write(true).open(&fifo);
    let mut lines = lines.expect("it opens");
    let mut first = Peer::connect(&server);
    let session = first.initialize(json!({"clientName": "t"})).await;
    // The frames are long because of the id.
    let id = "p".repeat(200);
    let script = "exec <\"$0\"; while read -r line && [ $line != end ]; do echo $line; done";
    let argv = json!(["sh", "-c", script, fifo]);
    let start = json!({"processId": id, "argv": argv, "cwd": "file:///"});
    let started = first.call("process/start", start).await;
    assert_eq!(started["result"]["processId"], id, "{started}");
    let mut owner = Peer::connect_as(&server, PeerKind::Owner);
    owner.initialize(json!({"clientName": "o"})).await;
    // The first lines fill the connection while nothing is read, so that the others are in the next
    // write together.
    for seq in 1..=LINES {
        writeln!(lines, "{seq}").expect("it is read");
        let read = json!({
            "processId": id, "sessionId": session, "afterSeq": seq - 1, "waitMs": 60_000
        });
        let page = owner.call("process/read", read).await;
        assert_eq!(page["result"]["chunks"][0]["seq"], seq, "{page}");
    }
    writeln!(lines, "end").expect("it is read");
    let mut events = Events::default();
    while events.by_seq.len() < RECEIVED {
        events.take(first.message().await);
    }
    drop(first);
    let mut second = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    while second.call("initialize", resume.clone()).await["result"].is_null() {
        tokio::task::yield_now().await;
    }
    while !events.closed {
        events.take(second.message().await);
    }
    events
}

//! Push delivery when a connection is lost in the middle of a write.

use std::collections::BTreeMap;

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

#[tokio::test]
async fn events_of_an_interrupted_write_come_again() {
    let server = server(Settings::default());
    let mut first = Peer::connect(&server);
    let session = first.initialize(json!({"clientName": "t"})).await;
    // The large event fills the connection while nothing is read, so that the small ones are in the
    // next write together. Their frames are long because of the id, and exceed the connection's buffer.
    let script = "head -c 100000 /dev/zero; for i in $(seq 700); do sleep 0.002; echo $i; done";
    let id = "p".repeat(200);
    let start = json!({"processId": id, "argv": ["sh", "-c", script], "cwd": "file:///"});
    let started = first.call("process/start", start).await;
    assert_eq!(started["result"]["processId"], id, "{started}");
    let mut owner = Peer::connect_as(&server, PeerKind::Owner);
    owner.initialize(json!({"clientName": "o"})).await;
    loop {
        let list = owner.call("session/list", json!({})).await;
        let sessions = list["result"]["sessions"].as_array().expect("a list");
        let found = sessions
            .iter()
            .find(|entry| entry["sessionId"] == session.as_str());
        if found.expect("it is there")["processes"][0]["state"] == "closed" {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut events = Events::default();
    while events.by_seq.len() < 100 {
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
    let last = *events.by_seq.keys().next_back().expect("events");
    assert_eq!(events.by_seq.len() as u64, last, "none is lost");
    assert!(
        events.doubled > 50,
        "the write was interrupted: {}",
        events.doubled
    );
}

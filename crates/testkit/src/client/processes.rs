//! The verbs of a process.

use serde_json::{Value, json};

use super::inbox::Counted;
use super::{Client, RpcError};
use crate::{Start, Story, base64, unbase64};

impl Client {
    /// Starts a process, which must succeed.
    pub async fn start(&self, start: Start) -> Value {
        self.call("process/start", start.into_params(&self.mark))
            .await
    }

    /// Starts a process, which must fail.
    pub async fn start_fails(&self, start: Start) -> RpcError {
        self.fails("process/start", start.into_params(&self.mark))
            .await
    }

    /// Starts a process without waiting for the answer.
    pub async fn request_start(&self, start: Start) -> i64 {
        self.request("process/start", start.into_params(&self.mark))
            .await
    }

    /// Starts a process and waits for its end.
    pub async fn run(&self, start: Start) -> Story {
        let id = start.id().to_owned();
        self.start(start).await;
        self.closed(&id).await
    }

    /// What was heard of a process so far.
    pub fn story(&self, id: &str) -> Story {
        self.inbox
            .look(|seen| seen.stories.get(id).cloned().unwrap_or_default())
    }

    /// Counts the output of a process from its start on instead of keeping it, for floods.
    pub fn only_count(&self, id: &str) {
        self.inbox.only_count(id);
    }

    /// How much of a counted process has come.
    pub fn counted(&self, id: &str) -> Counted {
        self.inbox
            .look(|seen| seen.counted.get(id).copied().unwrap_or_default())
    }

    /// Waits until so many bytes of a counted process have come.
    pub async fn counts(&self, id: &str, bytes: usize) {
        self.until(&format!("{bytes} bytes of {id}"), |seen| {
            (seen.counted.get(id)?.bytes >= bytes).then_some(())
        })
        .await;
    }

    /// Waits until what was heard of a process has what is looked for.
    pub async fn story_until(
        &self,
        id: &str,
        what: &str,
        mut look: impl FnMut(&Story) -> bool,
    ) -> Story {
        self.until(&format!("{what} of {id}"), |seen| {
            let story = seen.stories.get(id)?;
            look(story).then(|| story.clone())
        })
        .await
    }

    /// Waits until a process has written something.
    pub async fn sees(&self, id: &str, text: &str) -> Story {
        self.story_until(id, &format!("{text:?}"), |story| {
            story.text().contains(text)
        })
        .await
    }

    /// Waits for the exit of a process.
    pub async fn exited(&self, id: &str) -> Story {
        self.story_until(id, "the exit", |story| story.exit().is_some())
            .await
    }

    /// Waits for the end of a process, and checks what holds for all.
    pub async fn closed(&self, id: &str) -> Story {
        let story = self.story_until(id, "the close", Story::is_closed).await;
        story.check();
        story
    }

    /// Reads from a process; `more` are the params besides its id.
    pub async fn read(&self, id: &str, more: Value) -> Value {
        self.call("process/read", about(id, more)).await
    }

    /// Writes to a process, which must be answered with a status.
    pub async fn write(&self, id: &str, bytes: impl AsRef<[u8]>, write_id: &str) -> String {
        let params = json!({"processId": id, "chunk": base64(bytes), "writeId": write_id});
        status(&self.call("process/write", params).await)
    }

    /// Writes to a process, ends its input, and is told what became of it.
    pub async fn write_last(&self, id: &str, bytes: impl AsRef<[u8]>) -> String {
        let params = json!({"processId": id, "chunk": base64(bytes), "closeStdin": true});
        status(&self.call("process/write", params).await)
    }

    /// Writes to a process without waiting for the answer.
    pub async fn request_write(&self, id: &str, bytes: impl AsRef<[u8]>, write_id: &str) -> i64 {
        let params = json!({"processId": id, "chunk": base64(bytes), "writeId": write_id});
        self.request("process/write", params).await
    }

    /// Signals a process.
    pub async fn signal(&self, id: &str, signal: &str) {
        let params = json!({"processId": id, "signal": signal});
        assert_eq!(self.call("process/signal", params).await, json!({}));
    }

    /// Ends a process; says whether it was running.
    pub async fn terminate(&self, id: &str) -> bool {
        self.terminate_with(id, json!({})).await
    }

    /// Ends a process with further params; says whether it was running.
    pub async fn terminate_with(&self, id: &str, more: Value) -> bool {
        let answer = self.call("process/terminate", about(id, more)).await;
        let running = &answer["running"];
        assert_eq!(answer, json!({"running": running}), "nothing else in it");
        running.as_bool().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Ends a process and waits for its end.
    pub async fn end(&self, id: &str) -> Story {
        assert!(self.terminate(id).await, "{id} was not running");
        self.closed(id).await
    }

    /// One entry of `process/list`.
    pub async fn listed(&self, id: &str) -> Option<Value> {
        let list = self.call("process/list", json!({})).await;
        let entries = list["processes"].as_array().cloned().unwrap_or_default();
        entries.into_iter().find(|entry| entry["processId"] == id)
    }
}

/// The bytes in the answer to a read.
impl Story {
    /// What the chunks of an answer to `process/read` hold.
    pub fn page_bytes(answer: &Value) -> Vec<u8> {
        let chunks = answer["chunks"].as_array().cloned().unwrap_or_default();
        let bytes = chunks.iter().map(|chunk| unbase64(&chunk["chunk"]));
        bytes.collect::<Vec<_>>().concat()
    }

    /// The numbers of the chunks of an answer to `process/read`.
    pub fn page_seqs(answer: &Value) -> Vec<u64> {
        let chunks = answer["chunks"].as_array().cloned().unwrap_or_default();
        chunks
            .iter()
            .filter_map(|chunk| chunk["seq"].as_u64())
            .collect()
    }
}

fn about(id: &str, mut more: Value) -> Value {
    more["processId"] = json!(id);
    more
}

fn status(answer: &Value) -> String {
    let status = answer["status"].as_str();
    assert_eq!(answer, &json!({"status": status}), "nothing else in it");
    status.unwrap_or_default().to_owned()
}

//! Process methods.

use serde_json::{Value, json};

use super::received::OutputCount;
use super::{Client, RpcError};
use crate::{EventLog, Start, base64, unbase64};

impl Client {
    /// Starts a process, which must succeed.
    pub async fn start(&self, start: Start) -> Value {
        self.call("process/start", start.into_params(&self.tag))
            .await
    }

    /// Starts a process, which must fail.
    pub async fn start_fails(&self, start: Start) -> RpcError {
        self.call_fails("process/start", start.into_params(&self.tag))
            .await
    }

    /// Sends a start and returns its request id.
    pub async fn request_start(&self, start: Start) -> i64 {
        self.request("process/start", start.into_params(&self.tag))
            .await
    }

    /// Starts a process and waits for `closed`.
    pub async fn run(&self, start: Start) -> EventLog {
        let id = start.id().to_owned();
        self.start(start).await;
        self.closed(&id).await
    }

    /// Returns the events of a process so far.
    pub fn event_log(&self, id: &str) -> EventLog {
        let received = self.inbox.borrow();
        received.event_logs.get(id).cloned().unwrap_or_default()
    }

    /// Counts the output of a process instead of keeping it, for floods.
    pub fn only_count(&self, id: &str) {
        self.inbox.send_modify(|received| {
            received
                .counted
                .insert(id.to_owned(), OutputCount::default());
        });
    }

    /// Returns the output count of a process.
    pub fn counted(&self, id: &str) -> OutputCount {
        let received = self.inbox.borrow();
        received.counted.get(id).copied().unwrap_or_default()
    }

    /// Waits until `bytes` bytes of a counted process were received.
    pub async fn wait_count(&self, id: &str, bytes: usize) {
        self.until(&format!("{bytes} bytes of {id}"), |received| {
            (received.counted.get(id)?.bytes >= bytes).then_some(())
        })
        .await;
    }

    /// Waits until `look` accepts the events of a process.
    pub async fn event_log_until(
        &self,
        id: &str,
        what: &str,
        mut look: impl FnMut(&EventLog) -> bool,
    ) -> EventLog {
        self.until(&format!("{what} of {id}"), |received| {
            let log = received.event_logs.get(id)?;
            look(log).then(|| log.clone())
        })
        .await
    }

    /// Waits until the output of a process contains `text`.
    pub async fn wait_output(&self, id: &str, text: &str) -> EventLog {
        self.event_log_until(id, &format!("{text:?}"), |log| log.text().contains(text))
            .await
    }

    /// Waits for the exit of a process.
    pub async fn exited(&self, id: &str) -> EventLog {
        self.event_log_until(id, "the exit", |log| log.exit().is_some())
            .await
    }

    /// Waits for `closed` and checks the invariants of the event log.
    pub async fn closed(&self, id: &str) -> EventLog {
        let log = self
            .event_log_until(id, "the close", EventLog::is_closed)
            .await;
        log.check();
        log
    }

    /// Calls `process/read`; `more` are the params besides the id.
    pub async fn read(&self, id: &str, more: Value) -> Value {
        self.call("process/read", with_process_id(id, more)).await
    }

    /// Writes to a process and returns the status.
    pub async fn write(&self, id: &str, bytes: impl AsRef<[u8]>, write_id: &str) -> String {
        let request = self.request_write(id, bytes, write_id).await;
        status(self.response(request).await)
    }

    /// Writes to a process, closes its input, and returns the status.
    pub async fn write_last(&self, id: &str, bytes: impl AsRef<[u8]>) -> String {
        let params = json!({"processId": id, "chunk": base64(bytes), "closeStdin": true});
        status(self.try_call("process/write", params).await)
    }

    /// Sends a write and returns its request id.
    pub async fn request_write(&self, id: &str, bytes: impl AsRef<[u8]>, write_id: &str) -> i64 {
        let params = json!({"processId": id, "chunk": base64(bytes), "writeId": write_id});
        self.request("process/write", params).await
    }

    /// Signals a process.
    pub async fn signal(&self, id: &str, signal: &str) {
        let params = json!({"processId": id, "signal": signal});
        assert_eq!(self.call("process/signal", params).await, json!({}));
    }

    /// Terminates a process. Returns whether it was running.
    pub async fn terminate(&self, id: &str) -> bool {
        self.terminate_with(id, json!({})).await
    }

    /// Terminates a process with further params. Returns whether it was running.
    pub async fn terminate_with(&self, id: &str, more: Value) -> bool {
        let params = with_process_id(id, more);
        let result = self.call("process/terminate", params).await;
        let running = &result["running"];
        assert_eq!(result, json!({"running": running}), "unexpected members");
        running.as_bool().unwrap_or_else(|| panic!("{result}"))
    }

    /// Terminates a process and waits for `closed`.
    pub async fn terminate_and_wait(&self, id: &str) -> EventLog {
        assert!(self.terminate(id).await, "{id} was not running");
        self.closed(id).await
    }

    /// Returns the entry of `process/list`.
    pub async fn listed(&self, id: &str) -> Option<Value> {
        let list = self.call("process/list", json!({})).await;
        let entries = list["processes"].as_array().cloned().unwrap_or_default();
        entries.into_iter().find(|entry| entry["processId"] == id)
    }
}

impl EventLog {
    /// Decodes the chunks of a `process/read` result.
    pub fn page_bytes(result: &Value) -> Vec<u8> {
        let chunks = result["chunks"].as_array().cloned().unwrap_or_default();
        let bytes = chunks.iter().map(|chunk| unbase64(&chunk["chunk"]));
        bytes.collect::<Vec<_>>().concat()
    }

    /// The sequence numbers of a `process/read` result.
    pub fn page_seqs(result: &Value) -> Vec<u64> {
        let chunks = result["chunks"].as_array().cloned().unwrap_or_default();
        chunks
            .iter()
            .filter_map(|chunk| chunk["seq"].as_u64())
            .collect()
    }
}

fn with_process_id(id: &str, mut more: Value) -> Value {
    more["processId"] = json!(id);
    more
}

fn status(result: Result<Value, RpcError>) -> String {
    let result = result.unwrap_or_else(|error| panic!("process/write failed: {error:?}"));
    let status = result["status"].as_str();
    assert_eq!(result, json!({"status": status}), "unexpected members");
    status.unwrap_or_default().to_owned()
}

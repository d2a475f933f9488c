//! Writes notifications with the options that the client of a connection requested.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};

use outpost_protocol::encode_notification;
use outpost_rpc::FrameBuffer;
use serde::Serialize;

/// How notifications are written to the client of a connection.
#[derive(Debug, Default)]
pub(crate) struct NotificationOptions {
    /// Methods of the notifications that the client has disabled.
    pub(crate) suppressed: HashSet<String>,
    /// Whether notifications contain the time at which they were written, as in the app-server.
    pub(crate) timestamped: bool,
}

/// The options of a connection. `initialize` sets them, before anything is notified.
pub(crate) type SharedNotificationOptions = Arc<OnceLock<NotificationOptions>>;

/// Appends notifications to the frames of the next write.
pub(crate) struct Notifier<'a> {
    frames: &'a mut FrameBuffer,
    options: Option<&'a NotificationOptions>,
}

impl<'a> Notifier<'a> {
    pub(crate) fn new(
        frames: &'a mut FrameBuffer,
        options: &'a OnceLock<NotificationOptions>,
    ) -> Self {
        Notifier {
            frames,
            options: options.get(),
        }
    }

    /// Appends a notification, unless the client has disabled its method.
    pub(crate) fn notify<T: Serialize>(&mut self, method: &str, params: &T) {
        let mut message = Vec::new();
        match encode_notification(&mut message, method, params) {
            Ok(()) => self.encode(method, message.len(), |out| out.extend_from_slice(&message)),
            Err(error) => tracing::error!(%error, method, "encoding a notification failed"),
        }
    }

    /// Appends a notification of exactly `len` bytes that `encode` appends to the frame.
    pub(crate) fn encode(&mut self, method: &str, len: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.suppresses(method) {
            return;
        }
        if !self.options.is_some_and(|options| options.timestamped) {
            encode(self.frames.begin(len));
            return self.frames.finish();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let end = format!(",\"emittedAtMs\":{}}}", now.unwrap_or_default().as_millis());
        let out = self.frames.begin(len - 1 + end.len());
        encode(out);
        // The brace that closes the message.
        out.pop();
        out.extend_from_slice(end.as_bytes());
        self.frames.finish();
    }

    /// Appends the response to a request.
    pub(crate) fn response(&mut self, message: &[u8]) {
        self.frames.message(message);
    }

    fn suppresses(&self, method: &str) -> bool {
        self.options
            .is_some_and(|options| options.suppressed.contains(method))
    }
}

#[cfg(test)]
mod tests {
    use outpost_protocol::{OutputEncoder, Stream};
    use outpost_rpc::Framing;
    use serde_json::Value;

    use super::*;

    fn written(options: NotificationOptions) -> Vec<Value> {
        let shared = OnceLock::from(options);
        let mut frames = FrameBuffer::new(Framing::Lines);
        let mut notifier = Notifier::new(&mut frames, &shared);
        notifier.notify("a/done", &[1]);
        let encoder = OutputEncoder::new("p");
        let len = encoder.encoded_len(1, Stream::Stdout, 3);
        notifier.encode("process/output", len, |out| {
            encoder.encode(out, 1, Stream::Stdout, b"abc");
        });
        notifier.response(b"{\"id\":1}");
        let lines = frames.as_bytes().split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn notifications_are_timestamped_and_responses_are_not() {
        let messages = written(NotificationOptions {
            timestamped: true,
            ..NotificationOptions::default()
        });
        let stamped: Vec<bool> = messages
            .iter()
            .map(|message| message["emittedAtMs"].is_u64())
            .collect();
        assert_eq!(stamped, [true, true, false]);
        assert_eq!(messages[1]["params"]["chunk"], "YWJj");
    }

    #[test]
    fn suppressed_notifications_are_not_written() {
        let messages = written(NotificationOptions {
            suppressed: HashSet::from(["process/output".to_owned()]),
            timestamped: false,
        });
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0]["method"], "a/done");
        assert!(messages[0].get("emittedAtMs").is_none());
    }
}

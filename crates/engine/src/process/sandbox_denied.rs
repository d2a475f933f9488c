//! Detects that a sandbox caused a failure.

use outpost_journal::{Seq, Stream};

use super::Process;

impl Process {
    /// Whether the exit code and the retained output indicate that the sandbox denied an
    /// operation.
    pub(crate) fn looks_denied(&self, code: i32) -> bool {
        if code == 0 {
            return false;
        }
        let chunks = self.page(Seq::START, None).chunks;
        let stream = |wanted: Stream| {
            let chunks = chunks.iter().filter(move |chunk| chunk.stream == wanted);
            chunks.map(|chunk| &chunk.bytes[..])
        };
        let streams = [Stream::Stdout, Stream::Stderr, Stream::Pty];
        outpost_sandbox::is_denied(code, streams.map(stream))
    }
}

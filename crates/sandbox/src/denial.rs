//! Recognizes processes that failed because of their sandbox.

use memchr::memmem;

/// Error messages of programs that were denied something, in lower case.
const PHRASES: [&[u8]; 7] = [
    b"operation not permitted",
    b"permission denied",
    b"read-only file system",
    b"seccomp",
    b"sandbox",
    b"landlock",
    b"failed to write file",
];

/// The exit code of a process that the seccomp filter killed: 128 + SIGSYS.
const KILLED_BY_SECCOMP: i32 = 159;

/// Returns whether a sandboxed process that exited with `code` was probably denied something: the seccomp
/// filter killed it, or it failed and one of its streams contains a typical error message. Each stream
/// comes in chunks, which may split a message.
pub fn is_denied<'a, S, P>(code: i32, streams: S) -> bool
where
    S: IntoIterator<Item = P>,
    P: IntoIterator<Item = &'a [u8]>,
{
    match code {
        0 => false,
        KILLED_BY_SECCOMP => true,
        _ => streams.into_iter().any(|chunks| contains_phrase(chunks)),
    }
}

fn contains_phrase<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let longest = PHRASES.iter().map(|phrase| phrase.len()).max().unwrap_or(0);
    let mut text: Vec<u8> = Vec::new();
    for chunk in chunks {
        // Keeps the end of the previous chunk, in case a phrase continues here.
        let kept = text.len().min(longest.saturating_sub(1));
        text.drain(..text.len() - kept);
        text.extend(chunk.iter().map(u8::to_ascii_lowercase));
        if PHRASES
            .iter()
            .any(|phrase| memmem::find(&text, phrase).is_some())
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(code: i32, streams: &[&[&str]]) -> bool {
        let streams = streams
            .iter()
            .map(|chunks| chunks.iter().map(|chunk| chunk.as_bytes()));
        is_denied(code, streams)
    }

    #[test]
    fn failure_with_error_message_is_a_denial() {
        assert!(denied(1, &[&["sh: x: Read-only file system"]]));
        assert!(denied(1, &[&["fine"], &["Operation NOT permitted"]]));
        assert!(!denied(0, &[&["permission denied"]]));
        assert!(!denied(1, &[&["no such file"]]));
        assert!(!denied(1, &[]));
    }

    #[test]
    fn phrases_may_span_chunks_but_not_streams() {
        assert!(denied(1, &[&["it says permis", "sion", " denied"]]));
        assert!(!denied(1, &[&["permis"], &["sion denied"]]));
    }

    #[test]
    fn sigsys_is_a_denial_without_a_message() {
        assert!(denied(159, &[]));
    }
}

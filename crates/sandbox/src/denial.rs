//! Whether a process has failed because of its sandbox.

/// What a program says that has run into a wall, in lower case.
const WORDS: [&[u8]; 7] = [
    b"operation not permitted",
    b"permission denied",
    b"read-only file system",
    b"seccomp",
    b"sandbox",
    b"landlock",
    b"failed to write file",
];

/// What the filter of system calls kills with, as an exit code: 128 and SIGSYS.
const KILLED_BY_FILTER: i32 = 159;

/// Whether the end of a confined process shows the sandbox's hand: it died of a forbidden system
/// call, or failed and one of its streams has the words for it. Each stream comes in pieces, which
/// may cut a word in two.
pub fn is_denied<'a, S, P>(code: i32, streams: S) -> bool
where
    S: IntoIterator<Item = P>,
    P: IntoIterator<Item = &'a [u8]>,
{
    match code {
        0 => false,
        KILLED_BY_FILTER => true,
        _ => streams.into_iter().any(|pieces| has_words(pieces)),
    }
}

fn has_words<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let longest = WORDS.iter().map(|words| words.len()).max().unwrap_or(0);
    let mut text: Vec<u8> = Vec::new();
    for piece in pieces {
        // The end of what came before, for a word that goes on here.
        let kept = text.len().min(longest.saturating_sub(1));
        text.drain(..text.len() - kept);
        text.extend(piece.iter().map(u8::to_ascii_lowercase));
        if WORDS.iter().any(|words| contains(&text, words)) {
            return true;
        }
    }
    false
}

fn contains(text: &[u8], words: &[u8]) -> bool {
    memchr::memmem::find(text, words).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(code: i32, streams: &[&[&str]]) -> bool {
        let streams = streams
            .iter()
            .map(|pieces| pieces.iter().map(|piece| piece.as_bytes()));
        is_denied(code, streams)
    }

    #[test]
    fn a_failure_with_the_words_is_a_denial() {
        assert!(denied(1, &[&["sh: x: Read-only file system"]]));
        assert!(denied(1, &[&["fine"], &["Operation NOT permitted"]]));
        assert!(!denied(0, &[&["permission denied"]]));
        assert!(!denied(1, &[&["no such file"]]));
        assert!(!denied(1, &[]));
    }

    #[test]
    fn words_may_be_cut_in_two_but_streams_are_not_glued() {
        assert!(denied(1, &[&["it says permis", "sion", " denied"]]));
        assert!(!denied(1, &[&["permis"], &["sion denied"]]));
    }

    #[test]
    fn a_forbidden_call_is_a_denial_without_a_word() {
        assert!(denied(159, &[]));
    }
}

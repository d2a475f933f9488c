//! Formats results as text for models.

use std::{borrow::Cow, time::Duration};

use super::{OutputExcerpt, ProcessState};

/// Decodes UTF-8. Invalid bytes become U+FFFD.
pub(super) fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Cuts a line that is longer than `limit` bytes, and marks the cut.
pub(super) fn shorten(line: &str, limit: usize) -> Cow<'_, str> {
    if line.len() <= limit {
        return Cow::Borrowed(line);
    }
    let end = line.floor_char_boundary(limit);
    Cow::Owned(format!(
        "{}… ({} more bytes)",
        &line[..end],
        line.len() - end
    ))
}

/// Formats a summary, with a line on how to read the omitted part.
pub(super) fn summary(summary: &OutputExcerpt, id: &str, stream: Option<&str>) -> String {
    let head = decode(&summary.head);
    let Some(gap) = summary.gap else {
        return head;
    };
    let is_terminated = head.is_empty() || head.ends_with('\n');
    let line_break = if is_terminated { "" } else { "\n" };
    let stream = stream.map_or_else(String::new, |name| format!(", \"stream\": \"{name}\""));
    format!(
        "{head}{line_break}[… {} omitted; read them with read_output {{\"process_id\": \"{id}\", \
         \"cursor\": {}{stream}}} …]\n{}",
        bytes(gap.bytes),
        gap.start,
        decode(&summary.tail),
    )
}

/// Formats the state of a process.
pub(super) fn state(state: &ProcessState, duration: Duration) -> String {
    let after = time(duration);
    match state {
        ProcessState::Running => format!("running for {after}"),
        ProcessState::Exited(code) => format!(
            "exit code {code} after {after}; a leftover process still holds its output open"
        ),
        ProcessState::Closed(code) => format!("exit code {code} after {after}"),
        ProcessState::Lost(reason) => format!("lost: {reason}"),
    }
}

/// Formats a section with a title. Returns nothing for empty content.
pub(super) fn section(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("\n--- {title} ---\n{}", content.trim_end_matches('\n'))
}

pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns the whole milliseconds of a duration.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "the value is rounded")]
    let in_units = |unit: u64| count as f64 / unit as f64;
    match count {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{count} bytes"),
        10_000..1_000_000 => format!("{:.0} kB", in_units(1000)),
        _ => format!("{:.1} MB", in_units(1_000_000)),
    }
}

/// Formats a count with the singular or plural noun.
pub(super) fn count(number: u64, singular: &str, plural: &str) -> String {
    match number {
        1 => format!("1 {singular}"),
        _ => format!("{number} {plural}"),
    }
}

/// Returns the last non-blank line, shortened.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    const MAX_CHARS: usize = 120;
    let text = decode(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MAX_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::output_log::OmittedOutput;

    #[test]
    fn summary_says_how_to_read_the_omitted_part() {
        let output = OutputExcerpt {
            head: b"first".to_vec(),
            gap: Some(OmittedOutput {
                bytes: 81_234,
                start: 5,
            }),
            tail: b"last\n".to_vec(),
        };
        insta::assert_snapshot!(summary(&output, "ab12-3", Some("stderr")), @r#"
        first
        [… 81 kB omitted; read them with read_output {"process_id": "ab12-3", "cursor": 5, "stream": "stderr"} …]
        last
        "#);
    }

    #[test]
    fn quantities_have_units() {
        let times = [7, 1500, 61_000].map(|millis| time(Duration::from_millis(millis)));
        assert_eq!(times, ["7 ms", "1.5 s", "1 min 1 s"]);
        assert_eq!(
            [1, 999, 12_345, 2_500_000].map(bytes),
            ["1 byte", "999 bytes", "12 kB", "2.5 MB"]
        );
    }
}

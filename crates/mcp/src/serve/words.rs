//! What answers say, in words that a model reads well.

use std::{borrow::Cow, time::Duration};

use super::{Cut, Digest, State};

/// Bytes as text; what isn't UTF-8 becomes a mark.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning of a line that is too long, saying so.
pub(super) fn shortened(line: &str, most: usize) -> Cow<'_, str> {
    if line.len() <= most {
        return Cow::Borrowed(line);
    }
    let end = line.floor_char_boundary(most);
    Cow::Owned(format!(
        "{}… ({} more bytes)",
        &line[..end],
        line.len() - end
    ))
}

/// A digest as one text, with a line in it that says what is missing and how to
/// get it.
pub(super) fn digest(digest: &Digest, id: &str, stream: Option<&str>) -> String {
    let Some(cut) = digest.cut else {
        return text(&digest.head);
    };
    let mut shown = text(&digest.head);
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown.push_str(&left_out(cut, id, stream));
    shown.push('\n');
    shown.push_str(&text(&digest.tail));
    shown
}

fn left_out(cut: Cut, id: &str, stream: Option<&str>) -> String {
    let stream = stream.map_or_else(String::new, |name| format!(", \"stream\": \"{name}\""));
    format!(
        "[… {} left out; read on with read_output {{\"process_id\": \"{id}\", \"cursor\": {}{stream}}} …]",
        bytes(cut.bytes),
        cut.from,
    )
}

/// How a process stands.
pub(super) fn state(state: &State, ran: Duration) -> String {
    match state {
        State::Running => format!("running for {}", time(ran)),
        State::Exited(code) => format!(
            "exit code {code} after {}; something that it started still holds its output",
            time(ran)
        ),
        State::Closed(code) => format!("exit code {code} after {}", time(ran)),
        State::Lost(why) => format!("lost: {why}"),
    }
}

/// A titled part, left out if there is nothing in it.
pub(super) fn part(title: &str, content: &str) -> String {
    match content {
        "" => String::new(),
        content => format!("\n--- {title} ---\n{}", content.trim_end_matches('\n')),
    }
}

pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

pub(super) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let many = |unit: u64| count as f64 / unit as f64;
    match count {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{count} bytes"),
        10_000..1_000_000 => format!("{:.0} kB", many(1000)),
        _ => format!("{:.1} MB", many(1_000_000)),
    }
}

/// A number of things.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// The last line that has something in it, cut to what fits a line.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    const MOST: usize = 120;
    let text = text(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let shown: String = line.trim().chars().take(MOST).collect();
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_says_how_to_read_on() {
        let cut = Digest {
            head: b"first".to_vec(),
            cut: Some(Cut {
                bytes: 81_234,
                from: 5,
            }),
            tail: b"last\n".to_vec(),
        };
        insta::assert_snapshot!(digest(&cut, "ab12-3", Some("stderr")), @r#"
        first
        [… 81 kB left out; read on with read_output {"process_id": "ab12-3", "cursor": 5, "stream": "stderr"} …]
        last
        "#);
    }

    #[test]
    fn numbers_have_units() {
        let times = [7, 1500, 61_000].map(|millis| time(Duration::from_millis(millis)));
        assert_eq!(times, ["7 ms", "1.5 s", "1 min 1 s"]);
        assert_eq!(
            [1, 999, 12_345, 2_500_000].map(bytes),
            ["1 byte", "999 bytes", "12 kB", "2.5 MB"]
        );
    }
}

//! Expands `{a,b}` in patterns.

/// Expands all groups of a pattern. Returns none if there are more than `limit` results. An unclosed
/// group is literal.
pub(super) fn expand(text: &str, limit: usize) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= limit {
            return None;
        }
        match first_group(&text) {
            None => done.push(text),
            Some((before, choices, after)) => {
                let each = choices.iter().rev();
                open.extend(each.map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

/// Finds the innermost group that is closed first. Returns the text before it, its alternatives and the
/// text after it.
fn first_group(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let mut start = None;
    let mut commas = Vec::new();
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (character, start) {
            ('\\', _) => escaped = true,
            ('{', _) => {
                start = Some(at);
                commas.clear();
            }
            (',', Some(_)) => commas.push(at),
            ('}', Some(from)) => {
                let mut choices = Vec::new();
                let mut begin = from + 1;
                for comma in commas.into_iter().chain([at]) {
                    choices.push(&text[begin..comma]);
                    begin = comma + 1;
                }
                return Some((&text[..from], choices, &text[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn groups_are_expanded_and_other_text_is_kept() {
        let all = |text: &str| expand(text, 64).unwrap();
        assert_eq!(all("a"), ["a"]);
        assert_eq!(all("*.{pem,key}"), ["*.pem", "*.key"]);
        assert_eq!(all("{a,b}/{c,}"), ["a/c", "a/", "b/c", "b/"]);
        assert_eq!(all("{a,{b,c}d}"), ["a", "bd", "a", "cd"]);
        assert_eq!(all("{a,b"), ["{a,b"]);
        assert_eq!(all("a}b{"), ["a}b{"]);
        assert_eq!(all("\\{a,b}"), ["\\{a,b}"]);
        assert_eq!(all("{{a,b}"), ["{a", "{b"]);
    }

    #[test]
    fn too_many_results_are_rejected() {
        assert_eq!(expand(&"{a,b}".repeat(20), 64), None);
    }
}

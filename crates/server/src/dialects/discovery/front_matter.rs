//! The front matter of a `SKILL.md`: the YAML between two lines of `---`. Pure.
//!
//! Only scalars are understood, which is all that the members here may be: plain, quoted, and blocks
//! that begin with `|` or `>`.

/// The description of a skill.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) short_description: Option<String>,
}

/// Parses the head of a file; `None` if it has no front matter.
pub(super) fn parse(text: &str) -> Option<FrontMatter> {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let mut head = Vec::new();
    loop {
        match lines.next()? {
            line if line.trim_end() == "---" => break,
            line => head.push(line),
        }
    }
    let mut result = FrontMatter::default();
    let mut parent = "";
    for (index, line) in head.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim_start().split_once(':') else {
            continue;
        };
        if indent == 0 {
            parent = key;
        }
        let member = match (indent, parent, key) {
            (0, _, "name") => &mut result.name,
            (0, _, "description") => &mut result.description,
            (1.., "metadata", "short-description") => &mut result.short_description,
            _ => continue,
        };
        let text = scalar(value.trim(), &head[index + 1..], indent);
        *member = Some(text).filter(|text| !text.is_empty());
    }
    Some(result)
}

/// Reads a scalar, which may continue on deeper lines.
fn scalar(value: &str, following: &[&str], indent: usize) -> String {
    let is_deeper =
        |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
    let block = following
        .iter()
        .take_while(is_deeper)
        .map(|line| line.trim());
    match value.chars().next() {
        Some('|') => block.collect::<Vec<_>>().join("\n").trim().to_owned(),
        Some('>') => block.collect::<Vec<_>>().join(" ").trim().to_owned(),
        Some(quote @ ('"' | '\'')) => {
            let inner = value[1..].strip_suffix(quote).unwrap_or(&value[1..]);
            match quote {
                '"' => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
                _ => inner.replace("''", "'"),
            }
        }
        _ => {
            let plain = value.split_once(" #").map_or(value, |(plain, _)| plain);
            plain.trim().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_every_style_are_read() {
        let text = "---\nname: \"s \\\"1\\\"\"\ndescription: >\n  two\n  lines\nother:\n  name: no\n\
                    metadata:\n  short-description: 'it''s'\n---\n# name: x\n";
        let expected = FrontMatter {
            name: Some("s \"1\"".to_owned()),
            description: Some("two lines".to_owned()),
            short_description: Some("it's".to_owned()),
        };
        assert_eq!(parse(text), Some(expected));
        let plain = parse("---\nname: a: b # c\ndescription:\n---").unwrap();
        assert_eq!(
            (plain.name.as_deref(), plain.description),
            (Some("a: b"), None)
        );
        for none in ["", "name: x\n", "---\nname: x\n", "# x\n---\n---\n"] {
            assert_eq!(parse(none), None, "{none:?}");
        }
    }
}

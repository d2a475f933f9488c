//! Arguments as a person would type them.

/// A command line that a shell would take apart into these arguments again.
pub(crate) fn quoted(argv: &[String]) -> String {
    let words: Vec<_> = argv.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// A text with everything made visible that would do something to a terminal.
pub(crate) fn visible(text: &str) -> String {
    let visible = text.chars().map(|c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    visible.collect()
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=:,./@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_where_they_have_to_be() {
        let argv = ["make", "-j8", "CC=gcc", "a b", "", "it's", "$HOME", "x\ny"];
        let argv: Vec<_> = argv.map(str::to_owned).into();
        assert_eq!(
            quoted(&argv),
            r"make -j8 CC=gcc 'a b' '' 'it'\''s' '$HOME' $'x\ny'"
        );
    }

    #[test]
    fn nothing_reaches_a_terminal_as_a_command() {
        let word = "\u{1b}[2J\u{9b}0m\u{7f}".to_owned();
        let shown = quoted(std::slice::from_ref(&word));
        assert_eq!(shown, r"$'\x1b[2J\u009b0m\x7f'");
        assert!(!visible(&word).contains(char::is_control));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_shell_understands_it(argv in proptest::collection::vec("[^\u{0}]{0,12}", 1..4)) {
            let script = format!("printf '%s\\0' {}", quoted(&argv));
            let said = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
            let expected: Vec<u8> = argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            prop_assert_eq!(String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&expected), "{}", script);
        }
    }
}

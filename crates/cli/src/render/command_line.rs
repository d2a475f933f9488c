//! Formats command lines.

use std::borrow::Cow;

use super::visible::is_hidden;

/// Quotes arguments so that bash splits them back into the same arguments, without hidden
/// characters.
pub(crate) fn quoted(argv: &[String]) -> String {
    let args: Vec<_> = argv.iter().map(|arg| quote(arg)).collect();
    args.join(" ")
}

fn quote(arg: &str) -> Cow<'_, str> {
    match shlex::try_quote(arg) {
        Ok(quoted) if !arg.contains(is_hidden) => quoted,
        _ => ansi_c_quote(arg).into(),
    }
}

/// Quotes as `$'…'`, which shlex doesn't support: hidden characters must not reach the terminal.
fn ansi_c_quote(arg: &str) -> String {
    let mut quoted = "$'".to_owned();
    for c in arg.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_hidden(c) => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
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
    fn only_special_arguments_are_quoted() {
        let argv = ["make", "-j8", "CC=gcc", "a b", "", "it's", "$HOME", "x\ny"];
        let argv: Vec<_> = argv.map(str::to_owned).into();
        assert_eq!(
            quoted(&argv),
            r#"make -j8 'CC=gcc' 'a b' '' "it's" '$HOME' $'x\ny'"#
        );
    }

    #[test]
    fn hidden_characters_are_escaped() {
        let word = "\u{1b}[2J\u{9b}0m\u{7f}\u{202e}".to_owned();
        let shown = quoted(std::slice::from_ref(&word));
        assert_eq!(shown, r"$'\x1b[2J\U0000009b0m\x7f\U0000202e'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn bash_splits_quoted_arguments_into_the_originals(argv in proptest::collection::vec("[^\u{0}]{0,12}", 1..4)) {
            let script = format!("printf '%s\\0' {}", quoted(&argv));
            let said = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
            let expected: Vec<u8> = argv.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            prop_assert_eq!(String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&expected), "{}", script);
        }
    }
}

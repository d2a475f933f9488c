//! What a shell is told to launch a server with.

/// From here on Ctrl-C and Ctrl-\ are ours alone, which we pass on to the command: a
/// program that is started ignoring them goes on doing so. The server stays in the
/// group that may use the terminal all the same, since an ssh may have to ask for a
/// password there.
const DEAF: &str = "trap '' INT QUIT; ";

/// Words that a shell understands itself, so that they can't be executed.
const BUILT_IN: [&str; 6] = ["!", ".", "command", "eval", "exec", "source"];

/// How a line is run so that as little as possible stands between us and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One program, which the shell can become.
    Program,
    /// The same, with variables before it.
    WithVariables,
    /// Anything else: the shell stays, and ends with what it runs.
    Script,
}

/// The script that launches a server by this line.
pub(crate) fn launch_script(line: &str) -> String {
    // Who becomes the server is who is killed, should it come to that.
    let become_it = match shape(line) {
        Shape::Program => "exec ",
        // Behind them, so that they are what they are to a shell.
        Shape::WithVariables => {
            let (variables, program) = behind_variables(line.trim_start());
            return format!("{DEAF}{variables}exec {program}");
        }
        Shape::Script => "",
    };
    format!("{DEAF}{become_it}{}", line.trim_start())
}

fn shape(line: &str) -> Shape {
    let first = line.split_whitespace().next().unwrap_or_default();
    if BUILT_IN.contains(&first) || has_operators(line) {
        return Shape::Script;
    }
    match is_assignment(first) {
        true => Shape::WithVariables,
        false => Shape::Program,
    }
}

/// The variables that stand before a program, with the space behind them, and the rest.
fn behind_variables(line: &str) -> (&str, &str) {
    let mut rest = line;
    while is_assignment(rest) {
        rest = rest[word_length(rest)..].trim_start();
    }
    line.split_at(line.len() - rest.len())
}

/// How long the first word is, quotes and all.
fn word_length(line: &str) -> usize {
    let end = unquoted(line).find(|(_, character)| character.is_whitespace());
    end.map_or(line.len(), |(at, _)| at)
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let mut characters = name.chars();
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_';
    characters.next().is_some_and(begins)
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
}

/// Whether anything outside of quotes makes more than one command of it, or may. What
/// belongs to a redirection doesn't.
fn has_operators(line: &str) -> bool {
    let mut behind_redirection = None;
    unquoted(line.trim()).any(|(at, character)| match character {
        '&' | '|' if behind_redirection == Some(at) => false,
        ';' | '&' | '|' | '(' | ')' | '`' | '\n' => true,
        '<' | '>' => {
            behind_redirection = Some(at + 1);
            false
        }
        _ => false,
    })
}

/// The characters that mean to a shell what they are, with their places: neither what
/// is in quotes or behind a backslash, nor those themselves.
fn unquoted(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let mut characters = line.char_indices();
    std::iter::from_fn(move || {
        loop {
            let (at, character) = characters.next()?;
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => {
                    characters.next();
                }
                (None, '\'' | '"') => quote = Some(character),
                (None, _) => return Some((at, character)),
                (Some(_), _) => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_passed_over() {
        for (line, left) in [
            (r#"a'b"c'd"e'f"g"#, "adg"),
            (r#"a\'b\"c"#, "abc"),
            (r#"'\'a"\"b"c\d"#, "ac"),
            ("ä'ö'ü 'open", "äü "),
        ] {
            let found: Vec<_> = unquoted(line).collect();
            let characters: String = found.iter().map(|(_, character)| character).collect();
            assert_eq!(characters, left, "{line}");
            let there = |(at, character): &(usize, char)| line[*at..].starts_with(*character);
            assert!(found.iter().all(there), "{line}");
        }
    }

    #[test]
    fn a_shell_becomes_what_is_one_program() {
        for line in [
            "outpost serve --listen stdio://",
            "ssh build outpost serve --listen stdio://",
            "sh -c 'echo $$ > pid; exec outpost serve'",
            r#"sh -c "a && b""#,
            r"./a\;b 'it'\''s; one'",
            "outpost serve 2>/dev/null",
            "outpost serve 2>&1 >|log",
            "outpost serve a=b",
            "./a=b serve",
        ] {
            assert_eq!(shape(line), Shape::Program, "{line}");
        }
        assert_eq!(launch_script(" a b"), "trap '' INT QUIT; exec a b");
    }

    #[test]
    fn variables_may_stand_before_it() {
        for line in ["A=1 outpost serve", "_b2='x y' C= outpost serve"] {
            assert_eq!(shape(line), Shape::WithVariables, "{line}");
        }
        for (line, script) in [
            ("A=1 b", "A=1 exec b"),
            (
                "A='x y' B=\"$HOME/a b\" C=~/d e f=g",
                "A='x y' B=\"$HOME/a b\" C=~/d exec e f=g",
            ),
            (r"A=x\ y  b", r"A=x\ y  exec b"),
        ] {
            assert_eq!(launch_script(line), format!("trap '' INT QUIT; {script}"));
        }
    }

    #[test]
    fn a_script_is_left_as_it_is() {
        for line in [
            "cd /srv && outpost serve",
            "cd /srv; exec outpost serve",
            "exec outpost serve",
            ". ./profile",
            "tee log | outpost serve",
            "(outpost serve)",
            "outpost serve $(cat flags)",
            "A=1 outpost serve `cat flags`",
            "cd /srv\nexec outpost serve",
            r"outpost serve \>& true",
            "outpost serve '>'& true",
        ] {
            assert_eq!(shape(line), Shape::Script, "{line}");
        }
        assert_eq!(launch_script("cd / && a"), "trap '' INT QUIT; cd / && a");
    }
}

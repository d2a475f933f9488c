//! Tests of the scanner.

use super::*;

fn code(text: &str) -> Vec<String> {
    split(text).into_iter().map(|line| line.code).collect()
}

fn test_lines(path: &str, text: &str) -> Vec<usize> {
    File::new(path, text)
        .numbered()
        .filter_map(|(number, line)| line.test.then_some(number))
        .collect()
}

#[test]
fn strings_and_comments_are_not_code() {
    assert_eq!(code("a(\"unsafe\"); // unsafe\n"), ["a(\"\"); "]);
    assert_eq!(code("a /* x /* y */ z */ b"), ["a  b"]);
    assert_eq!(code("a(\"\\\"b\"); c"), ["a(\"\"); c"]);
    assert_eq!(code("r#\"x\"y\"# z"), ["\"\" z"]);
    assert_eq!(code("br\"x\\\" z"), ["b\"\" z"]);
    assert_eq!(code("\"one\ntwo\" three"), ["\"\"", " three"]);
    assert_eq!(code("\"one\\\ntwo\" three"), ["\"\"", " three"]);
    assert_eq!(split("x // why\n")[0].comment, " why");
}

#[test]
fn lifetime_does_not_open_a_character() {
    assert_eq!(
        code("f<'a>('\"', '\\'', '\\u{41}', 'b)"),
        ["f<'a>('', '', '', 'b)"]
    );
}

#[test]
fn name_ending_in_r_does_not_open_a_raw_string() {
    assert_eq!(code("bar\"x\\\"y\" z"), ["bar\"\" z"]);
    assert_eq!(code("r#fn(x)"), ["r#fn(x)"]);
}

#[test]
fn lines_are_counted_like_in_an_editor() {
    assert_eq!(code("").len(), 0);
    assert_eq!(code("a\n").len(), 1);
    assert_eq!(code("a\nb").len(), 2);
}

#[test]
fn only_whole_words_match() {
    assert!(has_word("unsafe {", "unsafe"));
    assert!(!has_word("forbid(unsafe_code)", "unsafe"));
    assert!(!has_word("not_unsafe", "unsafe"));
}

#[test]
fn test_module_ends_with_its_brace() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    assert_eq!(test_lines("crates/x/src/a.rs", text), [2, 3, 4, 5]);
}

#[test]
fn external_test_module_ends_with_its_semicolon() {
    let text = "#[cfg(test)]\nmod tests;\nfn c() {}\n";
    assert_eq!(test_lines("crates/x/src/a.rs", text), [1, 2]);
}

#[test]
fn further_attributes_belong_to_the_item() {
    let text = "#[cfg(all(test, unix))]\n#[path = \"x.rs\"]\nfn a(b: [u8; 2]) {\n}\nfn c() {}\n";
    assert_eq!(test_lines("crates/x/src/a.rs", text), [1, 2, 3, 4]);
}

#[test]
fn not_test_configuration_is_not_a_test() {
    let text = "#[cfg(not(test))]\nfn a() {}\n#[cfg(feature = \"test\")]\nfn b() {}\n";
    assert!(test_lines("crates/x/src/a.rs", text).is_empty());
}

#[test]
fn whole_files_can_be_tests() {
    for path in [
        "tests/main.rs",
        "crates/x/tests/a/b.rs",
        "crates/x/src/a/tests.rs",
    ] {
        assert_eq!(test_lines(path, "fn a() {}\n"), [1], "{path}");
    }
    assert_eq!(test_lines("crates/testkit/src/lib.rs", "fn a() {}\n"), [1]);
    assert_eq!(
        test_lines("crates/x/src/a.rs", "#![cfg(test)]\nfn a() {}\n"),
        [1, 2]
    );
    assert!(test_lines("crates/x/src/test.rs", "fn a() {}\n").is_empty());
}

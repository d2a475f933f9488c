//! Path URIs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use outpost_protocol::{PathUri, PathUriError};
use proptest::prelude::*;

fn path(uri: &str) -> String {
    let path = PathUri::parse(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
    path.as_path().to_str().unwrap().to_owned()
}

/// An absolute, lexically normal path of any bytes.
fn unix_path() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"ab.%?# ~".to_vec()),]
        .prop_filter("no separator, no NUL", |byte| !matches!(byte, 0 | b'/'));
    let segment = prop::collection::vec(byte, 1..8)
        .prop_filter("no dots", |segment| !matches!(&segment[..], b"." | b".."));
    prop::collection::vec(segment, 0..6).prop_map(|segments| {
        let mut path = vec![b'/'];
        path.extend(segments.join(&b'/'));
        path
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn unix_paths_round_trip(bytes in unix_path()) {
        let path = Path::new(OsStr::from_bytes(&bytes));
        let uri = PathUri::from_path(path);
        prop_assert_eq!(uri.as_path().as_os_str(), path.as_os_str());
        let text = uri.to_string();
        prop_assert!(text.is_ascii());
        let parsed = PathUri::parse(&text).unwrap();
        prop_assert_eq!(parsed.as_path().as_os_str(), path.as_os_str());
        let json = serde_json::to_string(&uri).unwrap();
        prop_assert_eq!(&json, &format!("\"{text}\""));
        prop_assert_eq!(serde_json::from_str::<PathUri>(&json).unwrap(), uri);
    }

    #[test]
    fn parsed_paths_are_absolute_and_normal(
        uri in prop_oneof![
            any::<String>(),
            "(?i:file):(//(localhost)?)?[/.a%20fF#?é]{0,24}",
            "file://(/|\\.|\\.\\.|a|%2e|%2F|%00|%c3%28|\\\\){0,16}",
        ],
    ) {
        if let Ok(parsed) = PathUri::parse(&uri) {
            let bytes = parsed.as_path().as_os_str().as_bytes();
            prop_assert_eq!(bytes[0], b'/');
            prop_assert!(!bytes.contains(&0));
            if bytes != b"/" {
                for segment in bytes[1..].split(|byte| *byte == b'/') {
                    prop_assert!(!matches!(segment, b"" | b"." | b".."));
                }
            }
            prop_assert_eq!(PathUri::parse(&parsed.to_string()), Ok(parsed.clone()));
            prop_assert_eq!(PathUri::from_path(parsed.as_path()), parsed);
        }
    }

    #[test]
    fn native_paths_become_absolute_and_normal(bytes: Vec<u8>) {
        prop_assume!(!bytes.contains(&0));
        let uri = PathUri::from_path(Path::new(OsStr::from_bytes(&bytes)));
        prop_assert_eq!(PathUri::parse(&uri.to_string()), Ok(uri));
    }
}

#[test]
fn equivalent_uris_are_equal() {
    for uri in [
        "file:///srv/project",
        "FILE:///srv/project",
        "file:/srv/project",
        "file://localhost/srv/project",
        "file://LocalHost/srv/project",
        "file:///srv/project/",
        "file:////srv//project//",
        "file:///srv/./project/.",
        "file:///srv/x/../project",
        "file:///../srv/project",
        "file:///%73rv/%70roject",
        "file:///srv/%2e/x/%2E%2e/project",
    ] {
        assert_eq!(path(uri), "/srv/project", "{uri}");
    }
    for root in [
        "file:///",
        "file:////",
        "file:///..",
        "file:///a/../..",
        "file:/.",
    ] {
        assert_eq!(path(root), "/", "{root}");
    }
}

#[test]
fn escaped_slash_is_rejected() {
    for uri in [
        "file:///srv%2Fproject",
        "file:///srv%2f..%2fproject",
        "file:///%2F",
        "file:%2F%2Fsrv",
    ] {
        let expected = match uri {
            "file:%2F%2Fsrv" => PathUriError::NotAbsolute,
            _ => PathUriError::EscapedSlash,
        };
        assert_eq!(PathUri::parse(uri), Err(expected), "{uri}");
    }
    assert_eq!(path("file:///a%252Fb"), "/a%2Fb");
}

#[test]
fn unescaped_characters_are_literal() {
    assert_eq!(path("file:///a b/ä+@:\\é"), "/a b/ä+@:\\é");
    assert_eq!(path("file:///a%20b/%C3%A4%3F%23%25"), "/a b/ä?#%");
}

#[test]
fn unusual_bytes_are_escaped() {
    let uri = PathUri::from_path(Path::new("/a-b.c_d~e/ä ?#%+\n"));
    assert_eq!(
        uri.to_string(),
        "file:///a-b.c_d~e/%C3%A4%20%3F%23%25%2B%0A"
    );
    assert_eq!(PathUri::from_path(Path::new("/")).to_string(), "file:///");
}

#[test]
fn non_utf8_paths_round_trip() {
    let uri = PathUri::parse("file:///caf%E9").unwrap();
    assert_eq!(uri.as_path().as_os_str().as_bytes(), b"/caf\xe9");
    assert_eq!(uri.to_string(), "file:///caf%E9");
    assert_eq!(uri.into_path().into_os_string().as_bytes(), b"/caf\xe9");
}

#[test]
fn foreign_host_has_its_own_error() {
    for uri in [
        "file://example.org/",
        "file://127.0.0.1/",
        "file://a@localhost/",
        "file://h?q",
    ] {
        let foreign = PathUriError::ForeignHost(uri.to_owned());
        assert_eq!(PathUri::parse(uri), Err(foreign));
    }
}

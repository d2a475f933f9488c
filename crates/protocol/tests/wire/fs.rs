//! The methods about files: what may be left out, and what is written.

use std::path::Path;

use outpost_protocol::{
    DirectoryEntry, EntryKind, FileMetadata, FileOp, FileRequest, FsCanonicalizeResult,
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsOpenParams, FsOpenResult,
    FsReadBlockResult, FsReadDirectoryResult, FsReadFileParams, FsReadFileResult, FsRemoveParams,
    FsWalkParams, FsWriteFileParams, InvalidBase64, InvalidParams, Method, PathUri, ReadFileAnswer,
    RequestId, SandboxPermissions, WalkEntry, WalkError, WalkResult, encode_response, parse_params,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn parse<T: DeserializeOwned>(params: &Value) -> Result<T, InvalidParams> {
    let raw: Box<RawValue> = serde_json::value::to_raw_value(params).unwrap();
    parse_params(Some(&raw))
}

fn uri(path: &str) -> PathUri {
    PathUri::from_path(Path::new(path))
}

#[test]
fn switches_are_on_unless_they_are_turned_off() {
    for (follow, expected) in [
        (json!({}), true),
        (json!({"followSymlinks": null}), true),
        (json!({"followSymlinks": true}), true),
        (json!({"followSymlinks": false}), false),
    ] {
        let with = |others: Value| {
            let mut params = follow.clone();
            let members = params.as_object_mut().unwrap();
            members.insert("path".to_owned(), json!("file:///a"));
            members.extend(others.as_object().unwrap().clone());
            params
        };
        let read: FsReadFileParams = parse(&with(json!({}))).unwrap();
        let write: FsWriteFileParams = parse(&with(json!({"dataBase64": ""}))).unwrap();
        let make: FsCreateDirectoryParams = parse(&with(json!({}))).unwrap();
        let look: FsGetMetadataParams = parse(&with(json!({}))).unwrap();
        let remove: FsRemoveParams = parse(&with(json!({}))).unwrap();
        let all = [
            read.symlinks,
            write.symlinks,
            make.symlinks,
            look.symlinks,
            remove.symlinks,
        ];
        let followed = all.map(|symlinks| symlinks.are_followed());
        assert_eq!(followed, [expected; 5], "{follow}");
        assert!(make.recursive && remove.recursive && remove.force);
    }
    let remove: FsRemoveParams =
        parse(&json!({"path": "file:///a", "recursive": false, "force": false})).unwrap();
    assert!(!remove.recursive && !remove.force);
    let copy: FsCopyParams =
        parse(&json!({"sourcePath": "file:///a", "destinationPath": "file:///b"})).unwrap();
    assert!(!copy.recursive);
}

#[test]
fn uri_of_another_host_is_recognized() {
    let open = json!({"handleId": "h", "path": "file://elsewhere/a", "sandbox": null});
    let error = parse::<FsOpenParams>(&open).unwrap_err();
    assert!(error.is_foreign_path());
    assert_eq!(error.member(), Some("path"));
    let copy = json!({"sourcePath": "file:///a", "destinationPath": "file://elsewhere/a"});
    assert!(parse::<FsCopyParams>(&copy).unwrap_err().is_foreign_path());
    // Only the invalid member itself counts, and no path inside the sandbox.
    let sandbox = json!({"permissions": {"type": "disabled"}, "cwd": "file://elsewhere/a"});
    let open = json!({"handleId": "h", "path": "file:///a", "sandbox": sandbox});
    let error = parse::<FsOpenParams>(&open).unwrap_err();
    assert!(!error.is_foreign_path());
    assert_eq!(error.member(), Some("sandbox.cwd"));
    for wrong in [
        "/a",
        "a",
        "http://localhost/a",
        "file:///a?b",
        "file:///%00",
    ] {
        let error = parse::<FsReadFileParams>(&json!({"path": wrong})).unwrap_err();
        assert!(!error.is_foreign_path(), "{wrong}");
    }
}

#[test]
fn invalid_base64_parses_as_an_error_value() {
    let write: FsWriteFileParams =
        parse(&json!({"path": "file:///a", "dataBase64": "aGk"})).unwrap();
    assert_eq!(write.data_base64.0, Err(InvalidBase64::Padding));
    assert!(
        serde_json::to_value(&write).is_err(),
        "there is no such text to write"
    );
    let write: FsWriteFileParams =
        parse(&json!({"path": "file:///a", "dataBase64": "aGk="})).unwrap();
    assert_eq!(write.data_base64.0.as_deref(), Ok(&b"hi"[..]));
    assert!(parse::<FsWriteFileParams>(&json!({"path": "file:///a", "dataBase64": 1})).is_err());
}

#[test]
fn walk_requires_all_limits() {
    let params = json!({"path": "file:///a", "options": {
        "maxDepth": 1, "maxDirectories": 2, "maxEntries": 3, "followDirectorySymlinks": true,
    }, "sandbox": {"permissions": {"type": "disabled"}}});
    let walk: FsWalkParams = parse(&params).unwrap();
    assert!(walk.options.follow_directory_symlinks && !walk.options.prune_hidden_directories);
    let raw = serde_json::value::to_raw_value(&params).unwrap();
    let request = FileRequest::parse(Method::FsWalk, Some(&raw))
        .unwrap()
        .unwrap();
    assert_eq!(request.op, FileOp::Walk(walk));
    assert_eq!(request.method(), Method::FsWalk);
    let sandbox = request.sandbox.as_ref().unwrap();
    assert_eq!(sandbox.permissions, SandboxPermissions::Disabled);
    let written: Value = serde_json::to_value(&request).unwrap();
    assert_eq!(written["options"]["pruneHiddenDirectories"], false);
    assert_eq!(
        parse::<FsWalkParams>(&written).unwrap(),
        parse(&params).unwrap()
    );
    for missing in [
        "maxDepth",
        "maxDirectories",
        "maxEntries",
        "followDirectorySymlinks",
    ] {
        let mut less = params.clone();
        less["options"].as_object_mut().unwrap().remove(missing);
        assert!(parse::<FsWalkParams>(&less).is_err(), "{missing}");
    }
}

#[test]
fn results() {
    fn line(result: &impl Serialize) -> String {
        serde_json::to_string(result).unwrap()
    }
    let lines = [
        line(&FsReadFileResult {
            data_base64: b"hi".to_vec(),
        }),
        line(&FsOpenResult {
            handle_id: "h".to_owned(),
        }),
        line(&FsReadBlockResult {
            chunk: b"hi".to_vec(),
            eof: true,
        }),
        line(&FileMetadata {
            is_directory: false,
            is_file: true,
            is_symlink: true,
            size: 5,
            created_at_ms: 0,
            modified_at_ms: -1,
        }),
        line(&FsCanonicalizeResult {
            path: uri("/srv/a b"),
        }),
        line(&FsReadDirectoryResult {
            entries: vec![DirectoryEntry {
                file_name: "a b".to_owned(),
                is_directory: true,
                is_file: false,
                is_broken_link: false,
            }],
        }),
        line(&WalkResult {
            entries: vec![
                WalkEntry {
                    path: "/srv/d".into(),
                    kind: EntryKind::Directory,
                },
                WalkEntry {
                    path: "/srv/f".into(),
                    kind: EntryKind::File,
                },
            ],
            errors: vec![WalkError {
                path: "/srv/d".into(),
                message: "no".to_owned(),
                reason: None,
            }],
            truncated: false,
        }),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"dataBase64":"aGk="}
    {"handleId":"h"}
    {"chunk":"aGk=","eof":true}
    {"isDirectory":false,"isFile":true,"isSymlink":true,"size":5,"createdAtMs":0,"modifiedAtMs":-1}
    {"path":"file:///srv/a%20b"}
    {"entries":[{"fileName":"a b","isDirectory":true,"isFile":false}]}
    {"entries":[{"path":"file:///srv/d","kind":"directory"},{"path":"file:///srv/f","kind":"file"}],"errors":[{"path":"file:///srv/d","message":"no"}],"truncated":false}
    "#);
}

proptest! {
    /// The answer that is made by hand is the one that serde would give.
    #[test]
    fn read_file_response_equals_serde_output(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 3), 0..20),
        last in proptest::collection::vec(any::<u8>(), 0..5),
        id in prop_oneof![any::<i64>().prop_map(RequestId::Integer), ".*".prop_map(RequestId::Text)],
        expected in 0_usize..100,
    ) {
        let mut answer = ReadFileAnswer::new(&id, expected).unwrap();
        for block in &blocks {
            answer.push(block);
        }
        answer.push(&last);
        let mut data_base64 = blocks.concat();
        data_base64.extend_from_slice(&last);
        let mut plain = Vec::new();
        encode_response(&mut plain, &id, &FsReadFileResult { data_base64 }).unwrap();
        prop_assert_eq!(String::from_utf8(answer.finish()), String::from_utf8(plain));
    }

    #[test]
    fn params_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40), follow: bool) {
        let params = FsWriteFileParams {
            path: uri("/srv/a"),
            data_base64: bytes.into(),
            symlinks: Some(follow).into(),
            sandbox: None,
        };
        let written = serde_json::to_value(&params).unwrap();
        prop_assert_eq!(parse::<FsWriteFileParams>(&written).unwrap(), params);
    }
}

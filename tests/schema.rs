//! Tests `outpost schema`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::outpost;

/// The files of a directory, by name.
fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            (name, std::fs::read_to_string(entry.path()).expect("a file"))
        })
        .collect()
}

#[tokio::test]
async fn every_method_has_a_file_and_all_are_in_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("made/by/it");
    let out_text = out.to_str().expect("a UTF-8 path");
    let output = outpost().run(&["schema", "--out", out_text]).await;
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(0), "", "")
    );
    let written = files(&out);
    for (name, text) in &written {
        let document: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(document["$id"].as_str(), Some(name.as_str()));
    }
    let bundle: Value = serde_json::from_str(&written["outpost.json"]).expect("JSON");
    let inside = bundle["$defs"].as_object().expect("definitions");
    assert_eq!(inside.len(), written.len() - 1);
    for name in [
        "initialize.json",
        "process-start.json",
        "process-output.json",
    ] {
        assert!(inside.contains_key(name), "{name}");
    }

    // A second run over existing files yields identical bytes.
    outpost().run(&["schema", "--out", out_text]).await;
    assert_eq!(files(&out), written);
}

#[tokio::test]
async fn uncreatable_directory_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let out = file.path().join("below");
    let out = out.to_str().expect("a UTF-8 path");
    let output = outpost().run(&["schema", "--out", out]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let start = format!("outpost: cannot create directory {out}: ");
    assert!(output.stderr.starts_with(&start), "{}", output.stderr);
}

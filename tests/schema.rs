//! `outpost schema`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::outpost;

/// The files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            (name, std::fs::read_to_string(entry.path()).expect("a file"))
        })
        .collect()
}

#[tokio::test]
async fn every_method_gets_its_file_and_all_are_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("made/by/it");
    let out_text = out.to_str().expect("a path in UTF-8");
    let ended = outpost().run(&["schema", "--out", out_text]).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
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

    // Again, over what is there: the same to the byte.
    outpost().run(&["schema", "--out", out_text]).await;
    assert_eq!(files(&out), written);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let out = file.path().join("below");
    let out = out.to_str().expect("a path in UTF-8");
    let ended = outpost().run(&["schema", "--out", out]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let start = format!("outpost: cannot make the folder {out}: ");
    assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
}

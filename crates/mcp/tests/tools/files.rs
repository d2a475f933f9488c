//! Files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::bench::{in_each_place, soon};

#[tokio::test]
async fn a_file_is_written_read_and_edited() {
    in_each_place(async |bench| {
        let write = json!({"path": "new/folder/a.txt", "content": "one\ntwo\nthree\n"});
        let (written, words) = bench.call_for_words("write_file", write).await;
        assert_eq!(
            (&written["created"], &written["size_bytes"]),
            (&json!(true), &json!(14))
        );
        assert!(words.starts_with("made "), "{words}");

        let (read, words) = bench
            .call_for_words("read_file", json!({"path": "new/folder/a.txt"}))
            .await;
        assert_eq!(read["content"], "one\ntwo\nthree\n");
        assert_eq!(
            (&read["total_lines"], &read["next_line"]),
            (&json!(3), &Value::Null)
        );
        assert!(
            words.ends_with("     1\tone\n     2\ttwo\n     3\tthree\n"),
            "{words}"
        );

        let edit = json!({"path": "new/folder/a.txt", "old_text": "two\n", "new_text": "2\n2\n"});
        let (changed, words) = bench.call_for_words("edit_file", edit).await;
        assert_eq!(
            (&changed["replaced"], &changed["line"]),
            (&json!(1), &json!(2))
        );
        assert!(words.contains("     3\t2\n     4\tthree\n"), "{words}");
        assert_eq!(bench.read("new/folder/a.txt"), "one\n2\n2\nthree\n");

        let again = json!({"path": "new/folder/a.txt", "content": "x", "if_exists": "fail"});
        let said = bench.refused("write_file", again).await;
        assert!(said.contains("is there already"), "{said}");
        let again = json!({"path": "new/folder/a.txt", "content": "x"});
        assert_eq!(bench.call("write_file", again).await["created"], false);
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_mode_and_its_link() {
    in_each_place(async |bench| {
        bench.write("script", "echo one\n");
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(bench.path("script"), mode).unwrap();
        symlink("script", bench.path("link")).unwrap();
        // As long as it is open its number is nobody else's.
        let before = std::fs::File::open(bench.path("script")).unwrap();
        let edit = json!({"path": "link", "old_text": "one", "new_text": "two"});
        bench.call("edit_file", edit).await;
        let write = json!({"path": "script", "content": bench.read("script") + "echo three\n"});
        bench.call("write_file", write).await;
        assert!(bench.path("link").is_symlink());
        assert_eq!(bench.read("link"), "echo two\necho three\n");
        let now = std::fs::metadata(bench.path("script")).unwrap();
        assert_eq!(now.permissions().mode() & 0o777, 0o750);
        let before = before.metadata().unwrap().ino();
        assert_ne!(now.ino(), before, "it was replaced, not written into");
    })
    .await;
}

#[tokio::test]
async fn an_edit_has_to_be_clear() {
    in_each_place(async |bench| {
        bench.write("a", "x\ny\nx\n");
        bench.write("binary", b"\xff\xfe\0");
        std::fs::create_dir(bench.path("folder")).unwrap();
        for (arguments, words) in [
            (
                json!({"path": "a", "old_text": "x", "new_text": "z"}),
                "2 times (first on line 1, then on line 3)",
            ),
            (
                json!({"path": "a", "old_text": "q", "new_text": "z"}),
                "is not in the file",
            ),
            (
                json!({"path": "a", "old_text": "", "new_text": "z"}),
                "write_file",
            ),
            (
                json!({"path": "binary", "old_text": "x", "new_text": "z"}),
                "isn't UTF-8",
            ),
            (
                json!({"path": "folder", "old_text": "x", "new_text": "z"}),
                "is a directory",
            ),
            (
                json!({"path": "nope", "old_text": "x", "new_text": "z"}),
                "No such file or directory",
            ),
        ] {
            let said = bench.refused("edit_file", arguments).await;
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(bench.read("a"), "x\ny\nx\n");
        let all = json!({"path": "a", "old_text": "x", "new_text": "z", "replace_all": true});
        assert_eq!(bench.call("edit_file", all).await["replaced"], 2);
        assert_eq!(bench.read("a"), "z\ny\nz\n");
    })
    .await;
}

#[tokio::test]
async fn a_large_file_is_read_in_parts() {
    in_each_place(async |bench| {
        let lines: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        bench.write("large", &lines);
        let read = bench.call("read_file", json!({"path": "large"})).await;
        assert_eq!(
            (&read["next_line"], &read["total_lines"]),
            (&json!(1001), &Value::Null)
        );
        let part = json!({"path": "large", "start_line": 99_999, "max_lines": 10});
        let (read, words) = bench.call_for_words("read_file", part).await;
        assert_eq!(read["content"], "line 99999\nline 100000\n");
        assert_eq!(read["total_lines"], 100_000);
        assert!(words.contains(" 99999\tline 99999\n"), "{words}");
        let bytes = json!({"path": "large", "byte_offset": 5, "max_bytes": 100});
        let (read, words) = bench.call_for_words("read_file", bytes).await;
        assert_eq!(read["content"], lines[5..105]);
        assert_eq!(read["next_byte_offset"], 105);
        assert!(words.contains("\"byte_offset\": 105"), "{words}");
        let both = json!({"path": "large", "byte_offset": 5, "start_line": 100});
        assert!(bench.refused("read_file", both).await.contains("not both"));
    })
    .await;
}

#[tokio::test]
async fn what_is_no_text_is_told_and_comes_as_base64() {
    in_each_place(async |bench| {
        bench.write("picture", b"\x89PNG\0\xff");
        let said = bench.refused("read_file", json!({"path": "picture"})).await;
        assert!(
            said.contains("is no text") && said.contains("6 bytes"),
            "{said}"
        );
        let bytes = json!({"path": "picture", "byte_offset": 0});
        let read = bench.call("read_file", bytes).await;
        assert_eq!(read["encoding"], "base64");
        let write = json!({"path": "copy", "content": read["content"], "encoding": "base64"});
        bench.call("write_file", write).await;
        assert_eq!(std::fs::read(bench.path("copy")).unwrap(), b"\x89PNG\0\xff");
        let wrong = json!({"path": "copy", "content": "%%%", "encoding": "base64"});
        assert!(
            bench
                .refused("write_file", wrong)
                .await
                .contains("no valid base64")
        );
    })
    .await;
}

#[tokio::test]
async fn what_can_not_be_read_is_told_with_its_reason() {
    in_each_place(async |bench| {
        let made = std::process::Command::new("mkfifo")
            .arg(bench.path("pipe"))
            .status();
        assert!(made.unwrap().success());
        for (path, words) in [
            ("nope", "No such file or directory"),
            (".", "list_directory"),
            ("pipe", "cannot read"),
        ] {
            let said = bench.refused("read_file", json!({"path": path})).await;
            assert!(said.contains(words), "{said}");
        }
        let empty = json!({"path": "empty", "content": ""});
        bench.call("write_file", empty).await;
        let (_, words) = bench
            .call_for_words("read_file", json!({"path": "empty"}))
            .await;
        assert!(words.contains("it is empty"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn edits_at_the_same_time_are_all_there_in_the_end() {
    in_each_place(async |bench| {
        let lines: String = (0..20).map(|n| format!("line {n};\n")).collect();
        bench.write("a", lines);
        symlink("a", bench.path("link")).unwrap();
        let mut edits = Vec::new();
        for n in 0..20 {
            let path = if n % 2 == 0 { "a" } else { "folder/../link" };
            let (old, new) = (format!("line {n};"), format!("changed {n};"));
            let edit = json!({"path": path, "old_text": old, "new_text": new});
            edits.push(bench.begin("edit_file", edit).await);
        }
        for edit in edits {
            soon("an edit", edit.await_response()).await.unwrap();
        }
        let changed: String = (0..20).map(|n| format!("changed {n};\n")).collect();
        assert_eq!(bench.read("a"), changed);
    })
    .await;
}

#[tokio::test]
async fn a_way_with_dots_in_it_leads_to_the_same() {
    in_each_place(async |bench| {
        bench.write("top/src/a.rs", "x\n");
        bench.write("top/src/built/b.rs", "x\n");
        bench.write("top/src/.gitignore", "/built\n");
        for path in ["top", "top/../top", "./top/src/.."] {
            let search = json!({"path": path, "pattern": "x", "glob": "src/*.rs"});
            let found = bench.call("search_files", search).await;
            assert_eq!(found["match_count"], 1, "{path}: {found}");
            assert_eq!(found["files"][0]["path"], "src/a.rs", "{path}");
            let search = json!({"path": path, "glob": "*.rs"});
            let found = bench.call("search_files", search).await;
            assert_eq!(found["match_count"], 1, "{path}: {found}");
            let listing = json!({"path": path, "depth": 2});
            let listing = bench.call("list_directory", listing).await;
            let names = listing["entries"].as_array().unwrap().iter();
            let names: Vec<_> = names.map(|entry| entry["name"].as_str().unwrap()).collect();
            assert!(names.contains(&"src/a.rs"), "{path}: {names:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn text_that_is_shown_in_another_way_is_told() {
    in_each_place(async |bench| {
        bench.write("latin", b"caf\xe9\nb\n");
        let read = json!({"path": "latin"});
        let (read, words) = bench.call_for_words("read_file", read).await;
        assert_eq!(read["not_utf8"], true, "{read}");
        assert!(words.contains("isn't UTF-8"), "{words}");
        assert!(words.contains("byte_offset"), "{words}");

        bench.write("dos", "a\r\nb");
        let read = json!({"path": "dos"});
        let (read, words) = bench.call_for_words("read_file", read).await;
        assert_eq!(read["content"], "a\r\nb");
        assert_eq!(
            (&read["not_utf8"], &read["crlf"]),
            (&json!(false), &json!(true))
        );
        assert!(words.contains("\"\\r\\n\""), "{words}");
        assert!(words.contains("no line break at the end"), "{words}");

        bench.write("plain", "a\nb\n");
        let read = json!({"path": "plain"});
        let (read, words) = bench.call_for_words("read_file", read).await;
        assert_eq!(read["content"], "a\nb\n");
        assert_eq!(
            (&read["not_utf8"], &read["crlf"]),
            (&json!(false), &json!(false))
        );
        assert!(!words.contains("line break"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn answers_have_an_end_however_long_lines_are() {
    in_each_place(async |bench| {
        let long = "y".repeat(1_000_000);
        bench.write("long", format!("{long} x\n"));
        let edit = json!({"path": "long", "old_text": "x", "new_text": "z"});
        let changed = bench.call("edit_file", edit).await;
        let around = changed["around"].as_str().unwrap().len();
        assert!(around < 10_000, "{around}");

        let many = "x".repeat(10_000);
        bench.write("many", &many);
        let new = "z".repeat(10_000);
        let edit = json!({"path": "many", "old_text": "x", "new_text": new, "replace_all": true});
        let said = bench.refused("edit_file", edit).await;
        assert!(said.contains("100000000 bytes"), "{said}");
        assert_eq!(bench.read("many"), many);

        let lines = format!("{}\n", "x".repeat(400)).repeat(2000);
        bench.write("lines", lines);
        let search = json!({"path": "lines", "pattern": "x", "max_matches": 1000});
        let found = bench.call("search_files", search).await;
        assert_eq!(found["more"], true);
        let bytes = found.to_string().len();
        assert!(bytes < 300_000, "{bytes}");
        assert!(found["match_count"].as_u64().unwrap() > 100, "{found}");
    })
    .await;
}

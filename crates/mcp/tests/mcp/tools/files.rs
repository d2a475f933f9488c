//! The tools `read_file`, `write_file` and `edit_file`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::harness::{in_each_environment, soon};

#[tokio::test]
async fn file_is_written_read_and_edited() {
    in_each_environment(async |session| {
        let write = json!({"path": "new/folder/a.txt", "content": "one\ntwo\nthree\n"});
        let (written, text) = session.call_with_text("write_file", write).await;
        assert_eq!(
            (&written["created"], &written["size_bytes"]),
            (&json!(true), &json!(14))
        );
        assert!(text.starts_with("created "), "{text}");

        let (read, text) = session
            .call_with_text("read_file", json!({"path": "new/folder/a.txt"}))
            .await;
        assert_eq!(read["content"], "one\ntwo\nthree\n");
        assert_eq!(
            (&read["total_lines"], &read["next_line"]),
            (&json!(3), &Value::Null)
        );
        assert!(
            text.ends_with("     1\tone\n     2\ttwo\n     3\tthree\n"),
            "{text}"
        );

        let edit = json!({"path": "new/folder/a.txt", "old_text": "two\n", "new_text": "2\n2\n"});
        let (changed, text) = session.call_with_text("edit_file", edit).await;
        assert_eq!(
            (&changed["replaced"], &changed["line"]),
            (&json!(1), &json!(2))
        );
        assert!(text.contains("     3\t2\n     4\tthree\n"), "{text}");
        assert_eq!(session.read("new/folder/a.txt"), "one\n2\n2\nthree\n");

        let again = json!({"path": "new/folder/a.txt", "content": "x", "if_exists": "fail"});
        let message = session.call_failing("write_file", again).await;
        assert!(message.contains("exists already"), "{message}");
        let again = json!({"path": "new/folder/a.txt", "content": "x"});
        assert_eq!(session.call("write_file", again).await["created"], false);
    })
    .await;
}

#[tokio::test]
async fn replaced_file_keeps_its_mode_and_link() {
    in_each_environment(async |session| {
        session.write("script", "echo one\n");
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(session.path("script"), mode).unwrap();
        symlink("script", session.path("link")).unwrap();
        // While the file is open, its inode number isn't reused.
        let before = std::fs::File::open(session.path("script")).unwrap();
        let edit = json!({"path": "link", "old_text": "one", "new_text": "two"});
        session.call("edit_file", edit).await;
        let write = json!({"path": "script", "content": session.read("script") + "echo three\n"});
        session.call("write_file", write).await;
        assert!(session.path("link").is_symlink());
        assert_eq!(session.read("link"), "echo two\necho three\n");
        let now = std::fs::metadata(session.path("script")).unwrap();
        assert_eq!(now.permissions().mode() & 0o777, 0o750);
        let before = before.metadata().unwrap().ino();
        assert_ne!(now.ino(), before, "replaced, not written in place");
    })
    .await;
}

#[tokio::test]
async fn ambiguous_and_invalid_edits_are_rejected() {
    in_each_environment(async |session| {
        session.write("a", "x\ny\nx\n");
        session.write("binary", b"\xff\xfe\0");
        std::fs::create_dir(session.path("folder")).unwrap();
        for (arguments, text) in [
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
                "is not UTF-8",
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
            let message = session.call_failing("edit_file", arguments).await;
            assert!(message.contains(text), "{message}");
        }
        assert_eq!(session.read("a"), "x\ny\nx\n");
        let all = json!({"path": "a", "old_text": "x", "new_text": "z", "replace_all": true});
        assert_eq!(session.call("edit_file", all).await["replaced"], 2);
        assert_eq!(session.read("a"), "z\ny\nz\n");
    })
    .await;
}

#[tokio::test]
async fn large_file_is_read_in_parts() {
    in_each_environment(async |session| {
        let lines: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        session.write("large", &lines);
        let read = session.call("read_file", json!({"path": "large"})).await;
        assert_eq!(
            (&read["next_line"], &read["total_lines"]),
            (&json!(1001), &Value::Null)
        );
        let part = json!({"path": "large", "start_line": 99_999, "max_lines": 10});
        let (read, text) = session.call_with_text("read_file", part).await;
        assert_eq!(read["content"], "line 99999\nline 100000\n");
        assert_eq!(read["total_lines"], 100_000);
        assert!(text.contains(" 99999\tline 99999\n"), "{text}");
        let bytes = json!({"path": "large", "byte_offset": 5, "max_bytes": 100});
        let (read, text) = session.call_with_text("read_file", bytes).await;
        assert_eq!(read["content"], lines[5..105]);
        assert_eq!(read["next_byte_offset"], 105);
        assert!(text.contains("\"byte_offset\": 105"), "{text}");
        let both = json!({"path": "large", "byte_offset": 5, "start_line": 100});
        assert!(
            session
                .call_failing("read_file", both)
                .await
                .contains("not both")
        );
    })
    .await;
}

#[tokio::test]
async fn binary_file_is_read_as_base64() {
    in_each_environment(async |session| {
        session.write("picture", b"\x89PNG\0\xff");
        let message = session
            .call_failing("read_file", json!({"path": "picture"}))
            .await;
        assert!(
            message.contains("is not a text file") && message.contains("6 bytes"),
            "{message}"
        );
        let bytes = json!({"path": "picture", "byte_offset": 0});
        let read = session.call("read_file", bytes).await;
        assert_eq!(read["encoding"], "base64");
        let write = json!({"path": "copy", "content": read["content"], "encoding": "base64"});
        session.call("write_file", write).await;
        assert_eq!(
            std::fs::read(session.path("copy")).unwrap(),
            b"\x89PNG\0\xff"
        );
        let invalid = json!({"path": "copy", "content": "%%%", "encoding": "base64"});
        assert!(
            session
                .call_failing("write_file", invalid)
                .await
                .contains("not valid base64")
        );
    })
    .await;
}

#[tokio::test]
async fn unreadable_file_reports_the_reason() {
    in_each_environment(async |session| {
        let made = std::process::Command::new("mkfifo")
            .arg(session.path("pipe"))
            .status();
        assert!(made.unwrap().success());
        for (path, text) in [
            ("nope", "No such file or directory"),
            (".", "list_directory"),
            ("pipe", "cannot read"),
        ] {
            let message = session
                .call_failing("read_file", json!({"path": path}))
                .await;
            assert!(message.contains(text), "{message}");
        }
        let empty = json!({"path": "empty", "content": ""});
        session.call("write_file", empty).await;
        let (_, text) = session
            .call_with_text("read_file", json!({"path": "empty"}))
            .await;
        assert!(text.contains("the file is empty"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn concurrent_edits_are_all_applied() {
    in_each_environment(async |session| {
        let lines: String = (0..20).map(|n| format!("line {n};\n")).collect();
        session.write("a", lines);
        symlink("a", session.path("link")).unwrap();
        let mut edits = Vec::new();
        for n in 0..20 {
            let path = if n % 2 == 0 { "a" } else { "folder/../link" };
            let (old, new) = (format!("line {n};"), format!("changed {n};"));
            let edit = json!({"path": path, "old_text": old, "new_text": new});
            edits.push(session.begin("edit_file", edit).await);
        }
        for edit in edits {
            soon("an edit", edit.await_response()).await.unwrap();
        }
        let changed: String = (0..20).map(|n| format!("changed {n};\n")).collect();
        assert_eq!(session.read("a"), changed);
    })
    .await;
}

#[tokio::test]
async fn paths_with_dots_are_normalized() {
    in_each_environment(async |session| {
        session.write("top/src/a.rs", "x\n");
        session.write("top/src/built/b.rs", "x\n");
        session.write("top/src/.gitignore", "/built\n");
        for path in ["top", "top/../top", "./top/src/.."] {
            let search = json!({"path": path, "pattern": "x", "glob": "src/*.rs"});
            let found = session.call("search_files", search).await;
            assert_eq!(found["match_count"], 1, "{path}: {found}");
            assert_eq!(found["files"][0]["path"], "src/a.rs", "{path}");
            let search = json!({"path": path, "glob": "*.rs"});
            let found = session.call("search_files", search).await;
            assert_eq!(found["match_count"], 1, "{path}: {found}");
            let listing = json!({"path": path, "depth": 2});
            let listing = session.call("list_directory", listing).await;
            let names = listing["entries"].as_array().unwrap().iter();
            let names: Vec<_> = names.map(|entry| entry["name"].as_str().unwrap()).collect();
            assert!(names.contains(&"src/a.rs"), "{path}: {names:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn encoding_and_line_ends_are_reported() {
    in_each_environment(async |session| {
        session.write("latin", b"caf\xe9\nb\n");
        let read = json!({"path": "latin"});
        let (read, text) = session.call_with_text("read_file", read).await;
        assert_eq!(read["not_utf8"], true, "{read}");
        assert!(text.contains("invalid UTF-8"), "{text}");
        assert!(text.contains("byte_offset"), "{text}");

        session.write("dos", "a\r\nb");
        let read = json!({"path": "dos"});
        let (read, text) = session.call_with_text("read_file", read).await;
        assert_eq!(read["content"], "a\r\nb");
        assert_eq!(
            (&read["not_utf8"], &read["crlf"]),
            (&json!(false), &json!(true))
        );
        assert!(text.contains("\"\\r\\n\""), "{text}");
        assert!(text.contains("no line break at the end"), "{text}");

        session.write("plain", "a\nb\n");
        let read = json!({"path": "plain"});
        let (read, text) = session.call_with_text("read_file", read).await;
        assert_eq!(read["content"], "a\nb\n");
        assert_eq!(
            (&read["not_utf8"], &read["crlf"]),
            (&json!(false), &json!(false))
        );
        assert!(!text.contains("line break"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn responses_are_bounded_for_long_lines() {
    in_each_environment(async |session| {
        let long = "y".repeat(1_000_000);
        session.write("long", format!("{long} x\n"));
        let edit = json!({"path": "long", "old_text": "x", "new_text": "z"});
        let changed = session.call("edit_file", edit).await;
        let around = changed["around"].as_str().unwrap().len();
        assert!(around < 10_000, "{around}");

        let many = "x".repeat(10_000);
        session.write("many", &many);
        let new = "z".repeat(10_000);
        let edit = json!({"path": "many", "old_text": "x", "new_text": new, "replace_all": true});
        let message = session.call_failing("edit_file", edit).await;
        assert!(message.contains("100000000 bytes"), "{message}");
        assert_eq!(session.read("many"), many);

        let lines = format!("{}\n", "x".repeat(400)).repeat(2000);
        session.write("lines", lines);
        let search = json!({"path": "lines", "pattern": "x", "max_matches": 1000});
        let found = session.call("search_files", search).await;
        assert_eq!(found["more"], true);
        let bytes = found.to_string().len();
        assert!(bytes < 300_000, "{bytes}");
        assert!(found["match_count"].as_u64().unwrap() > 100, "{found}");
    })
    .await;
}

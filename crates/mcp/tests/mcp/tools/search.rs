//! The tool `search_files`.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::harness::{TestOptions, TestSession, in_each_environment, soon};

/// Creates a typical project.
fn create_project(session: &TestSession) {
    session.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    session.write("src/lib/needle.rs", "// a Needle\npub fn needle() {}\n");
    session.write("notes.md", "no such thing\n");
    session.write("target/debug/out", "needle\n");
    session.write(".gitignore", "/target\n*.log\n");
    session.write("src/run.log", "needle\n");
    session.write(".git/config", "needle\n");
    session.write(".env", "needle\n");
    session.write("picture", b"needle\0needle");
    symlink(session.directory.path(), session.path("src/loop")).unwrap();
}

/// Returns the path and line numbers of each file.
fn found(result: &Value) -> Vec<(String, Vec<u64>)> {
    let files = result["files"].as_array().unwrap().iter();
    let lines = |file: &Value| {
        let lines = file["lines"].as_array().unwrap().iter();
        lines.map(|line| line["number"].as_u64().unwrap()).collect()
    };
    files
        .map(|file| (file["path"].as_str().unwrap().to_owned(), lines(file)))
        .collect()
}

fn matches(list: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
    let own = |(path, lines): &(&str, &[u64])| ((*path).to_owned(), lines.to_vec());
    list.iter().map(own).collect()
}

#[tokio::test]
async fn finds_lines_in_relevant_files() {
    in_each_environment(async |session| {
        create_project(session);
        let (result, text) = session
            .call_with_text("search_files", json!({"pattern": "needle"}))
            .await;
        let expected = matches(&[("src/main.rs", &[2]), ("src/lib/needle.rs", &[2])]);
        assert_eq!(found(&result), expected);
        assert_eq!(
            (&result["match_count"], &result["more"]),
            (&json!(2), &json!(false))
        );
        assert!(
            text.contains("src/main.rs\n     2:\t    needle();"),
            "{text}"
        );

        for (arguments, expected) in [
            (
                json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src/lib"}),
                matches(&[("needle.rs", &[1, 2])]),
            ),
            (
                json!({"pattern": "needle", "include_hidden": true, "glob": ".env"}),
                matches(&[(".env", &[1])]),
            ),
            (
                json!({"pattern": "needle", "include_ignored": true, "glob": "*.log"}),
                matches(&[("src/run.log", &[1])]),
            ),
            (
                json!({"pattern": "needle()", "literal": true, "context_lines": 1}),
                matches(&[("src/main.rs", &[1, 2, 3]), ("src/lib/needle.rs", &[1, 2])]),
            ),
            (
                json!({"pattern": "needle", "files_only": true}),
                matches(&[("src/main.rs", &[]), ("src/lib/needle.rs", &[])]),
            ),
            (
                json!({"glob": "*.rs"}),
                matches(&[("src/main.rs", &[]), ("src/lib/needle.rs", &[])]),
            ),
            (
                json!({"glob": "src/*.rs"}),
                matches(&[("src/main.rs", &[])]),
            ),
            (json!({"pattern": "nowhere to be found"}), matches(&[])),
        ] {
            let result = session.call("search_files", arguments.clone()).await;
            assert_eq!(found(&result), expected, "{arguments}");
        }
        let file = json!({"pattern": "thing", "path": "notes.md"});
        let result = session.call("search_files", file).await;
        assert_eq!(result["match_count"], 1, "{result}");
    })
    .await;
}

#[tokio::test]
async fn links_are_found_by_name_but_not_followed() {
    in_each_environment(async |session| {
        create_project(session);
        symlink("main.rs", session.path("src/other.rs")).unwrap();
        symlink("main.rs", session.path("src/other.log")).unwrap();
        symlink("src", session.path("way")).unwrap();
        let search = json!({"glob": "*.rs", "path": "src"});
        let (result, text) = session.call_with_text("search_files", search).await;
        let names = |result: &Value| -> Vec<(String, bool)> {
            let files = result["files"].as_array().unwrap().iter();
            let describe = |file: &Value| {
                let path = file["path"].as_str().unwrap().to_owned();
                (path, file["link"] == json!(true))
            };
            files.map(describe).collect()
        };
        let expected = [
            ("main.rs", false),
            ("other.rs", true),
            ("lib/needle.rs", false),
        ];
        let expected = expected.map(|(path, link)| (path.to_owned(), link));
        assert_eq!(names(&result), expected);
        assert!(text.contains("\nother.rs  (link)\n"), "{text}");
        // A link to a directory is found by name, but nothing below it.
        let result = session.call("search_files", json!({"glob": "loop"})).await;
        assert_eq!(names(&result), [("src/loop".to_owned(), true)]);
        // Lines are found once, in the file itself.
        let result = session
            .call("search_files", json!({"pattern": "needle"}))
            .await;
        let lines = matches(&[("src/main.rs", &[2]), ("src/lib/needle.rs", &[2])]);
        assert_eq!(found(&result), lines);
        // A link given as the path stands for its target.
        let search = json!({"pattern": "needle", "path": "way"});
        let result = session.call("search_files", search).await;
        let lines = matches(&[
            ("main.rs", &[2]),
            ("lib/needle.rs", &[2]),
            ("run.log", &[1]),
        ]);
        assert_eq!(found(&result).len(), lines.len(), "{result}");
    })
    .await;
}

#[tokio::test]
async fn search_is_limited_and_rejects_invalid_arguments() {
    in_each_environment(async |session| {
        create_project(session);
        let one = json!({"pattern": "needle", "max_matches": 1});
        let (result, text) = session.call_with_text("search_files", one).await;
        assert_eq!(
            (&result["match_count"], &result["more"]),
            (&json!(1), &json!(true))
        );
        assert!(text.contains("there are more"), "{text}");
        let one = json!({"glob": "*.rs", "max_matches": 1});
        assert_eq!(session.call("search_files", one).await["more"], true);
        for (arguments, text) in [
            (json!({}), "give a `pattern`"),
            (json!({"pattern": "("}), "not a valid regular expression"),
            (
                json!({"glob": "a[", "pattern": "x"}),
                "not a valid glob pattern",
            ),
            (
                json!({"pattern": "x", "path": "nope"}),
                "No such file or directory",
            ),
        ] {
            let message = session.call_failing("search_files", arguments).await;
            assert!(message.contains(text), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn glob_applies_to_a_single_file() {
    in_each_environment(async |session| {
        session.write("src/a.rs", "x\n");
        let search = |glob| json!({"path": "src/a.rs", "pattern": "x", "glob": glob});
        let found = session.call("search_files", search("*.rs")).await;
        assert_eq!(found["match_count"], 1);
        let found = session.call("search_files", search("*.ts")).await;
        assert_eq!(found["match_count"], 0);
    })
    .await;
}

#[tokio::test]
async fn search_fails_if_the_executor_is_lost() {
    let mut options = TestOptions::default();
    options.limits.progress = std::time::Duration::from_millis(1);
    options.limits.concurrency = 1;
    let session = TestSession::remote(options).await;
    for n in 0..2000 {
        session.write(&format!("{}/{n}", n % 20), "x\n");
    }
    let search = session
        .begin("search_files", json!({"pattern": "nowhere"}))
        .await;
    soon("its progress", async {
        // The search is past its first directory by then.
        let mut progress = session.progress.lock().await;
        for _ in 0..20 {
            progress.recv().await;
        }
    })
    .await;
    session.remote.as_ref().unwrap().disappear();
    let result = soon("the response", search.await_response()).await.unwrap();
    let message = serde_json::to_value(result).unwrap();
    assert_eq!(message["isError"], true, "{message}");
    session.end().await;
}

#[tokio::test]
async fn unreadable_single_file_is_an_error() {
    in_each_environment(async |session| {
        // Reading it from the beginning fails even for root.
        let search = json!({"path": "/proc/self/mem", "pattern": "x"});
        let message = session.call_failing("search_files", search).await;
        assert!(message.contains("/proc/self/mem"), "{message}");
    })
    .await;
}

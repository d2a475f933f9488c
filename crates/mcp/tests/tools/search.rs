//! Searches.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::bench::{Bench, Wanted, in_each_place, soon};

/// A project as people have them.
fn project(bench: &Bench) {
    bench.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    bench.write("src/lib/needle.rs", "// a Needle\npub fn needle() {}\n");
    bench.write("notes.md", "no such thing\n");
    bench.write("target/debug/out", "needle\n");
    bench.write(".gitignore", "/target\n*.log\n");
    bench.write("src/run.log", "needle\n");
    bench.write(".git/config", "needle\n");
    bench.write(".env", "needle\n");
    bench.write("picture", b"needle\0needle");
    symlink(bench.folder.path(), bench.path("src/loop")).unwrap();
}

fn found(finds: &Value) -> Vec<(String, Vec<u64>)> {
    let files = finds["files"].as_array().unwrap().iter();
    let lines = |file: &Value| {
        let lines = file["lines"].as_array().unwrap().iter();
        lines.map(|line| line["number"].as_u64().unwrap()).collect()
    };
    files
        .map(|file| (file["path"].as_str().unwrap().to_owned(), lines(file)))
        .collect()
}

fn hits(list: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
    let own = |(path, lines): &(&str, &[u64])| ((*path).to_owned(), lines.to_vec());
    list.iter().map(own).collect()
}

#[tokio::test]
async fn lines_are_found_in_what_is_worth_looking_at() {
    in_each_place(async |bench| {
        project(bench);
        let (finds, words) = bench
            .call_for_words("search_files", json!({"pattern": "needle"}))
            .await;
        let expected = hits(&[("src/main.rs", &[2]), ("src/lib/needle.rs", &[2])]);
        assert_eq!(found(&finds), expected);
        assert_eq!(
            (&finds["match_count"], &finds["more"]),
            (&json!(2), &json!(false))
        );
        assert!(
            words.contains("src/main.rs\n     2:\t    needle();"),
            "{words}"
        );

        for (arguments, expected) in [
            (
                json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src/lib"}),
                hits(&[("needle.rs", &[1, 2])]),
            ),
            (
                json!({"pattern": "needle", "include_hidden": true, "glob": ".env"}),
                hits(&[(".env", &[1])]),
            ),
            (
                json!({"pattern": "needle", "include_ignored": true, "glob": "*.log"}),
                hits(&[("src/run.log", &[1])]),
            ),
            (
                json!({"pattern": "needle()", "literal": true, "context_lines": 1}),
                hits(&[("src/main.rs", &[1, 2, 3]), ("src/lib/needle.rs", &[1, 2])]),
            ),
            (
                json!({"pattern": "needle", "files_only": true}),
                hits(&[("src/main.rs", &[]), ("src/lib/needle.rs", &[])]),
            ),
            (
                json!({"glob": "*.rs"}),
                hits(&[("src/main.rs", &[]), ("src/lib/needle.rs", &[])]),
            ),
            (json!({"glob": "src/*.rs"}), hits(&[("src/main.rs", &[])])),
            (json!({"pattern": "nowhere to be found"}), hits(&[])),
        ] {
            let finds = bench.call("search_files", arguments.clone()).await;
            assert_eq!(found(&finds), expected, "{arguments}");
        }
        let file = json!({"pattern": "thing", "path": "notes.md"});
        let finds = bench.call("search_files", file).await;
        assert_eq!(finds["match_count"], 1, "{finds}");
    })
    .await;
}

#[tokio::test]
async fn links_are_found_by_name_and_not_followed() {
    in_each_place(async |bench| {
        project(bench);
        symlink("main.rs", bench.path("src/other.rs")).unwrap();
        symlink("main.rs", bench.path("src/other.log")).unwrap();
        symlink("src", bench.path("way")).unwrap();
        let search = json!({"glob": "*.rs", "path": "src"});
        let (finds, words) = bench.call_for_words("search_files", search).await;
        let names = |finds: &Value| -> Vec<(String, bool)> {
            let files = finds["files"].as_array().unwrap().iter();
            let said = |file: &Value| {
                let path = file["path"].as_str().unwrap().to_owned();
                (path, file["link"] == json!(true))
            };
            files.map(said).collect()
        };
        let expected = [
            ("main.rs", false),
            ("other.rs", true),
            ("lib/needle.rs", false),
        ];
        let expected = expected.map(|(path, link)| (path.to_owned(), link));
        assert_eq!(names(&finds), expected);
        assert!(words.contains("\nother.rs  (link)\n"), "{words}");
        // A link to a directory is one, too; nothing is found through it.
        let finds = bench.call("search_files", json!({"glob": "loop"})).await;
        assert_eq!(names(&finds), [("src/loop".to_owned(), true)]);
        // Lines are found where they are, and once.
        let finds = bench
            .call("search_files", json!({"pattern": "needle"}))
            .await;
        let lines = hits(&[("src/main.rs", &[2]), ("src/lib/needle.rs", &[2])]);
        assert_eq!(found(&finds), lines);
        // Who names a link means what it leads to.
        let search = json!({"pattern": "needle", "path": "way"});
        let finds = bench.call("search_files", search).await;
        let lines = hits(&[
            ("main.rs", &[2]),
            ("lib/needle.rs", &[2]),
            ("run.log", &[1]),
        ]);
        assert_eq!(found(&finds).len(), lines.len(), "{finds}");
    })
    .await;
}

#[tokio::test]
async fn a_search_has_an_end_and_says_so() {
    in_each_place(async |bench| {
        project(bench);
        let one = json!({"pattern": "needle", "max_matches": 1});
        let (finds, words) = bench.call_for_words("search_files", one).await;
        assert_eq!(
            (&finds["match_count"], &finds["more"]),
            (&json!(1), &json!(true))
        );
        assert!(words.contains("there is more"), "{words}");
        let one = json!({"glob": "*.rs", "max_matches": 1});
        assert_eq!(bench.call("search_files", one).await["more"], true);
        for (arguments, words) in [
            (json!({}), "give a `pattern`"),
            (json!({"pattern": "("}), "no regular expression"),
            (
                json!({"glob": "a[", "pattern": "x"}),
                "no pattern for names",
            ),
            (
                json!({"pattern": "x", "path": "nope"}),
                "No such file or directory",
            ),
        ] {
            let said = bench.refused("search_files", arguments).await;
            assert!(said.contains(words), "{said}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_glob_goes_for_a_single_file_too() {
    in_each_place(async |bench| {
        bench.write("src/a.rs", "x\n");
        let search = |glob| json!({"path": "src/a.rs", "pattern": "x", "glob": glob});
        let found = bench.call("search_files", search("*.rs")).await;
        assert_eq!(found["match_count"], 1);
        let found = bench.call("search_files", search("*.ts")).await;
        assert_eq!(found["match_count"], 0);
    })
    .await;
}

#[tokio::test]
async fn a_search_whose_place_is_lost_says_so() {
    let mut wanted = Wanted::default();
    wanted.bounds.progress = std::time::Duration::from_millis(1);
    wanted.bounds.search_at_once = 1;
    let bench = Bench::there(wanted).await;
    for n in 0..2000 {
        bench.write(&format!("{}/{n}", n % 20), "x\n");
    }
    let search = bench
        .begin("search_files", json!({"pattern": "nowhere"}))
        .await;
    soon("its progress", async {
        // By then it isn't at its first directory any more.
        let mut progress = bench.progress.lock().await;
        for _ in 0..20 {
            progress.recv().await;
        }
    })
    .await;
    bench.line.as_ref().unwrap().lose();
    let result = soon("the answer", search.await_response()).await.unwrap();
    let said = serde_json::to_value(result).unwrap();
    assert_eq!(said["isError"], true, "{said}");
    bench.end().await;
}

#[tokio::test]
async fn a_file_that_can_not_be_searched_is_told() {
    in_each_place(async |bench| {
        // Nobody can read that from its beginning, not even who may read everything.
        let search = json!({"path": "/proc/self/mem", "pattern": "x"});
        let said = bench.refused("search_files", search).await;
        assert!(said.contains("/proc/self/mem"), "{said}");
    })
    .await;
}

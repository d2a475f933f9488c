//! The tool `list_directory`.

use std::{os::unix::fs::symlink, time::Duration};

use outpost_mcp::serve::ToolLimits;
use serde_json::{Value, json};

use super::harness::{TestOptions, in_each_environment, in_each_environment_with};

#[tokio::test]
async fn lists_a_directory_in_pages_and_levels() {
    in_each_environment(async |session| {
        for name in ["b.txt", "a/one.txt", "a/deep/two.txt", ".hidden/x"] {
            session.write(name, "12345");
        }
        symlink("a", session.path("link")).unwrap();
        let names = |listing: &Value| -> Vec<String> {
            let entries = listing["entries"].as_array().unwrap();
            let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
            entries.iter().map(name).collect()
        };
        let (listing, text) = session
            .call_with_text("list_directory", json!({"sizes": true}))
            .await;
        assert_eq!(names(&listing), [".hidden", "a", "b.txt", "link"]);
        assert_eq!(listing["entries"][2]["size_bytes"], 5);
        assert!(
            text.contains("\na/\n") && text.contains("\nb.txt  5 bytes"),
            "{text}"
        );

        let deep = json!({"depth": 3});
        let listing = session.call("list_directory", deep).await;
        assert_eq!(
            names(&listing),
            [
                ".hidden",
                "a",
                "b.txt",
                "link",
                "a/deep",
                "a/one.txt",
                "a/deep/two.txt"
            ]
        );
        let part = json!({"path": "a", "max_entries": 1});
        let (listing, text) = session.call_with_text("list_directory", part).await;
        assert_eq!(names(&listing), ["deep"]);
        assert_eq!(
            (&listing["next_skip"], &listing["total_entries"]),
            (&json!(1), &json!(2))
        );
        assert!(text.contains("\"skip_entries\": 1"), "{text}");
        let rest = json!({"path": "a", "skip_entries": 1});
        assert_eq!(
            names(&session.call("list_directory", rest).await),
            ["one.txt"]
        );
        for (path, text) in [
            ("nope", "No such file or directory"),
            ("b.txt", "is not a directory"),
        ] {
            for depth in [1, 2] {
                let list = json!({"path": path, "depth": depth});
                let message = session.call_failing("list_directory", list).await;
                assert!(message.contains(text), "{message}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn links_are_listed_but_not_followed() {
    in_each_environment(async |session| {
        session.write("a/one.txt", "12345");
        session.write("b/deep/two.txt", "12345");
        session.write("b/.hidden/x", "12345");
        symlink("../../a", session.path("b/deep/folder")).unwrap();
        symlink("two.txt", session.path("b/deep/file")).unwrap();
        symlink("/dev/null", session.path("b/device")).unwrap();
        symlink("nowhere", session.path("b/broken")).unwrap();
        symlink("x", session.path("b/.hidden/y")).unwrap();
        symlink("b", session.path("way")).unwrap();
        let pipe = session.path("b/deep/pipe");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        let entries = |listing: &Value| -> Vec<String> {
            let entries = listing["entries"].as_array().unwrap().iter();
            let describe = |entry: &Value| {
                let word = |member: &str| entry[member].as_str().unwrap_or("-").to_owned();
                format!("{} {} {}", word("name"), word("kind"), word("leads_to"))
            };
            entries.map(describe).collect()
        };
        let top = ["a directory -", "b directory -", "way link directory"];
        let listing = session.call("list_directory", json!({})).await;
        assert_eq!(entries(&listing), top);
        let below = [
            ".hidden directory -",
            "broken link nothing",
            "deep directory -",
            "device link other",
            "deep/file link file",
            "deep/folder link directory",
            "deep/pipe other -",
            "deep/two.txt file -",
        ];
        // A link given as the path stands for its target.
        for path in ["b", "way"] {
            let list = json!({"path": path, "depth": 2, "sizes": true});
            let (listing, text) = session.call_with_text("list_directory", list).await;
            assert_eq!(entries(&listing), below, "{path}");
            assert_eq!(listing["total_entries"], 8);
            for message in [
                "\nbroken  (broken link)\n",
                "\ndeep/folder  (link to a directory)\n",
            ] {
                assert!(text.contains(message), "{text}");
            }
            let list = json!({"path": path});
            let listing = session.call("list_directory", list).await;
            assert_eq!(entries(&listing), below[..4], "{path}");
        }
        let list = json!({"path": "b", "depth": 2, "include_hidden": true});
        let listing = session.call("list_directory", list).await;
        assert!(entries(&listing).contains(&".hidden/y link file".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn links_are_sorted_into_pages() {
    in_each_environment(async |session| {
        session.write("b", "12345");
        for link in ["a", "c", "d"] {
            symlink("b", session.path(link)).unwrap();
        }
        for (skip, shown, next) in [
            (0, [("a", "link"), ("b", "file")], json!(2)),
            (2, [("c", "link"), ("d", "link")], Value::Null),
        ] {
            let page = json!({"skip_entries": skip, "max_entries": 2});
            let listing = session.call("list_directory", page).await;
            for (entry, (name, kind)) in shown.iter().enumerate() {
                assert_eq!(listing["entries"][entry]["name"], *name, "{listing}");
                assert_eq!(listing["entries"][entry]["kind"], *kind, "{listing}");
            }
            assert_eq!(listing["next_skip"], next, "{listing}");
            assert_eq!(listing["total_entries"], 4, "{listing}");
        }
    })
    .await;
}

#[tokio::test]
async fn timed_out_listing_is_incomplete() {
    let limits = ToolLimits {
        search_timeout: Duration::ZERO,
        ..ToolLimits::default()
    };
    let options = TestOptions {
        limits,
        ..TestOptions::default()
    };
    in_each_environment_with(options, async |session| {
        session.write("file", "12345");
        symlink("file", session.path("link")).unwrap();
        let listing = session.call("list_directory", json!({})).await;
        assert_eq!(listing["entries"][0]["name"], "file", "{listing}");
        assert_eq!(listing["total_entries"], 1, "{listing}");
        assert_eq!(listing["incomplete"], true, "{listing}");
    })
    .await;
}

//! Directories.

use std::{os::unix::fs::symlink, time::Duration};

use serde_json::{Value, json};

use outpost_mcp::serve::Bounds;

use crate::bench::{Wanted, in_each_place, in_each_place_with};

#[tokio::test]
async fn a_directory_is_listed() {
    in_each_place(async |bench| {
        for name in ["b.txt", "a/one.txt", "a/deep/two.txt", ".hidden/x"] {
            bench.write(name, "12345");
        }
        symlink("a", bench.path("link")).unwrap();
        let names = |listing: &Value| -> Vec<String> {
            let entries = listing["entries"].as_array().unwrap();
            let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
            entries.iter().map(name).collect()
        };
        let (listing, words) = bench
            .call_for_words("list_directory", json!({"sizes": true}))
            .await;
        assert_eq!(names(&listing), [".hidden", "a", "b.txt", "link"]);
        assert_eq!(listing["entries"][2]["size_bytes"], 5);
        assert!(
            words.contains("\na/\n") && words.contains("\nb.txt  5 bytes"),
            "{words}"
        );

        let deep = json!({"depth": 3});
        let listing = bench.call("list_directory", deep).await;
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
        let (listing, words) = bench.call_for_words("list_directory", part).await;
        assert_eq!(names(&listing), ["deep"]);
        assert_eq!(
            (&listing["next_skip"], &listing["total_entries"]),
            (&json!(1), &json!(2))
        );
        assert!(words.contains("\"skip_entries\": 1"), "{words}");
        let rest = json!({"path": "a", "skip_entries": 1});
        assert_eq!(
            names(&bench.call("list_directory", rest).await),
            ["one.txt"]
        );
        for (path, words) in [
            ("nope", "No such file or directory"),
            ("b.txt", "is no directory"),
        ] {
            for depth in [1, 2] {
                let list = json!({"path": path, "depth": depth});
                let said = bench.refused("list_directory", list).await;
                assert!(said.contains(words), "{said}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn links_are_listed_as_what_they_are_and_not_followed() {
    in_each_place(async |bench| {
        bench.write("a/one.txt", "12345");
        bench.write("b/deep/two.txt", "12345");
        bench.write("b/.hidden/x", "12345");
        symlink("../../a", bench.path("b/deep/folder")).unwrap();
        symlink("two.txt", bench.path("b/deep/file")).unwrap();
        symlink("/dev/null", bench.path("b/device")).unwrap();
        symlink("nowhere", bench.path("b/broken")).unwrap();
        symlink("x", bench.path("b/.hidden/y")).unwrap();
        symlink("b", bench.path("way")).unwrap();
        let pipe = bench.path("b/deep/pipe");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        let entries = |listing: &Value| -> Vec<String> {
            let entries = listing["entries"].as_array().unwrap().iter();
            let said = |entry: &Value| {
                let word = |member: &str| entry[member].as_str().unwrap_or("-").to_owned();
                format!("{} {} {}", word("name"), word("kind"), word("leads_to"))
            };
            entries.map(said).collect()
        };
        let top = ["a directory -", "b directory -", "way link directory"];
        let listing = bench.call("list_directory", json!({})).await;
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
        // Who names a link means what it leads to.
        for path in ["b", "way"] {
            let list = json!({"path": path, "depth": 2, "sizes": true});
            let (listing, words) = bench.call_for_words("list_directory", list).await;
            assert_eq!(entries(&listing), below, "{path}");
            assert_eq!(listing["total_entries"], 8);
            for said in [
                "\nbroken  (link that leads nowhere)\n",
                "\ndeep/folder  (link to a directory)\n",
            ] {
                assert!(words.contains(said), "{words}");
            }
            let list = json!({"path": path});
            let listing = bench.call("list_directory", list).await;
            assert_eq!(entries(&listing), below[..4], "{path}");
        }
        let list = json!({"path": "b", "depth": 2, "include_hidden": true});
        let listing = bench.call("list_directory", list).await;
        assert!(entries(&listing).contains(&".hidden/y link file".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn links_are_on_the_page_where_their_name_is() {
    in_each_place(async |bench| {
        bench.write("b", "12345");
        for link in ["a", "c", "d"] {
            symlink("b", bench.path(link)).unwrap();
        }
        for (skip, shown, next) in [
            (0, [("a", "link"), ("b", "file")], json!(2)),
            (2, [("c", "link"), ("d", "link")], Value::Null),
        ] {
            let page = json!({"skip_entries": skip, "max_entries": 2});
            let listing = bench.call("list_directory", page).await;
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
async fn a_listing_that_takes_too_long_is_incomplete() {
    let bounds = Bounds {
        search: Duration::ZERO,
        ..Bounds::default()
    };
    let wanted = Wanted {
        bounds,
        ..Wanted::default()
    };
    in_each_place_with(wanted, async |bench| {
        bench.write("file", "12345");
        symlink("file", bench.path("link")).unwrap();
        let listing = bench.call("list_directory", json!({})).await;
        assert_eq!(listing["entries"][0]["name"], "file", "{listing}");
        assert_eq!(listing["total_entries"], 1, "{listing}");
        assert_eq!(listing["incomplete"], true, "{listing}");
    })
    .await;
}

//! Watches of an executor, local and remote.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use outpost_client::{FileErrorKind, FileWatch, Sandbox, WatchOptions};
use tempfile::TempDir;

use crate::harness::{on_every_executor, soon};

const TREE: WatchOptions = WatchOptions { recursive: true };
const ENTRIES: WatchOptions = WatchOptions { recursive: false };

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

/// Waits until all of these paths were reported, and nothing else.
async fn expect(watch: &mut FileWatch, at: &Path, names: &[&str]) {
    let expected: BTreeSet<PathBuf> = names.iter().map(|name| at.join(name)).collect();
    let mut seen = BTreeSet::new();
    while seen != expected {
        let changes = soon("changes", watch.next()).await.unwrap();
        assert!(!changes.missed);
        assert!(changes.paths.is_sorted());
        seen.extend(changes.paths);
        assert!(seen.is_subset(&expected), "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_tree_are_reported() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        fs::create_dir_all(at.join("a/b")).unwrap();
        let mut watch = executor.watch(&at, TREE).await.unwrap();
        assert_eq!(watch.path(), at);
        fs::write(at.join("a/b/f"), "1").unwrap();
        expect(&mut watch, &at, &["a/b/f"]).await;
        fs::rename(at.join("a/b/f"), at.join("a/g")).unwrap();
        expect(&mut watch, &at, &["a/b/f", "a/g"]).await;
        fs::create_dir(at.join("new")).unwrap();
        fs::write(at.join("new/f"), "1").unwrap();
        expect(&mut watch, &at, &["new", "new/f"]).await;
        fs::remove_file(at.join("a/g")).unwrap();
        expect(&mut watch, &at, &["a/g"]).await;
        fs::rename(at.join("a"), at.join("c")).unwrap();
        expect(&mut watch, &at, &["a", "c", "c/b"]).await;
        fs::write(at.join("c/b/x"), "1").unwrap();
        expect(&mut watch, &at, &["c/b/x"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_survives_replacement_and_creation() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        let path = at.join("d/f");
        fs::create_dir(at.join("d")).unwrap();
        let watch = executor.files().watch(at.join("d/../d/f"), ENTRIES).await;
        let mut watch = watch.unwrap();
        assert_eq!(watch.path(), path);
        fs::write(&path, "1").unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
        fs::write(at.join("other"), "2").unwrap();
        fs::rename(at.join("other"), &path).unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
        fs::remove_file(&path).unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
        fs::write(&path, "3").unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
        fs::remove_dir_all(at.join("d")).unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
        fs::create_dir(at.join("d")).unwrap();
        fs::write(&path, "4").unwrap();
        expect(&mut watch, &at, &["d/f"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_watched_without_recursion() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        fs::create_dir(at.join("d")).unwrap();
        symlink(&at, at.join("d/link")).unwrap();
        let mut through = executor.watch(&at.join("d/link"), ENTRIES).await.unwrap();
        let mut watch = executor.watch(&at, ENTRIES).await.unwrap();
        fs::write(at.join("d/f"), "").unwrap();
        fs::write(at.join("f"), "").unwrap();
        expect(&mut watch, &at, &["f"]).await;
        expect(&mut through, &at, &["d/link/f"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_files_are_reported_or_missed() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        let mut watch = executor.watch(&at, TREE).await.unwrap();
        let made = at.clone();
        let making = tokio::task::spawn_blocking(move || {
            for number in 0..2_500 {
                let directory = made.join((number / 100).to_string());
                if number % 100 == 0 {
                    fs::create_dir(&directory).unwrap();
                }
                fs::write(directory.join(number.to_string()), "").unwrap();
            }
        });
        let mut seen = BTreeSet::new();
        let mut missed = false;
        while seen.len() < 2_525 && !missed {
            let changes = soon("changes", watch.next()).await.unwrap();
            missed |= changes.missed;
            seen.extend(changes.paths);
        }
        making.await.unwrap();
        fs::write(at.join("24/last"), "").unwrap();
        while !seen.contains(&at.join("24/last")) {
            let changes = soon("changes", watch.next()).await.unwrap();
            seen.extend(changes.paths);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relative_path_is_below_the_working_directory() {
    on_every_executor(async |executor| {
        let cwd = executor.environment().await.unwrap().cwd.unwrap();
        let watch = executor.watch(Path::new("no such/file"), ENTRIES).await;
        let expected = cwd.as_path().join("no such/file");
        assert_eq!(watch.unwrap().path(), expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_watches_name_the_path_and_the_reason() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        let sandbox = Sandbox::workspace(&at);
        let sandboxed = executor.files().sandboxed(sandbox.into());
        let error = sandboxed.watch(&at, ENTRIES).await.unwrap_err();
        assert_eq!(error.kind(), FileErrorKind::Invalid);
        let text = format!(
            "cannot watch {at:?}: a watch cannot be sandboxed; watch without a sandbox, or list the \
             files in it"
        );
        assert_eq!(error.to_string(), text);
        let mut watches = Vec::new();
        let error = loop {
            match executor.watch(&at, ENTRIES).await {
                Ok(watch) => watches.push(watch),
                Err(error) => break error,
            }
        };
        assert_eq!(watches.len(), 256);
        assert_eq!(error.kind(), FileErrorKind::Invalid);
        let text = "at most 256 watches may be open; end one first";
        assert_eq!(error.message(), text);
        // A watch that is dropped makes space.
        watches.pop();
        let mut watch = soon("space for a watch", async {
            loop {
                match executor.watch(&at, ENTRIES).await {
                    Ok(watch) => break watch,
                    Err(error) => assert_eq!(error.message(), text),
                }
            }
        })
        .await;
        fs::write(at.join("f"), "").unwrap();
        expect(&mut watch, &at, &["f"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_executor_ends_its_watches() {
    on_every_executor(async |executor| {
        let (_folder, at) = folder();
        let mut watch = executor.watch(&at, ENTRIES).await.unwrap();
        executor.close().await.unwrap();
        let error = soon("the end", watch.next()).await.unwrap_err();
        assert_eq!(error.kind(), FileErrorKind::Unavailable);
        assert!(error.executor_error().is_some(), "{error}");
        let error = executor.watch(&at, ENTRIES).await.unwrap_err();
        assert_eq!(error.kind(), FileErrorKind::Unavailable);
    })
    .await;
}

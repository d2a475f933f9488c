//! The files of an executor, local and remote.

use std::{
    os::unix::fs::{MetadataExt as _, PermissionsExt, symlink},
    path::Path,
};

use outpost_client::{EntryKind, FileError, FileErrorKind, Files, Remove, Sandbox, WalkOptions};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{on_every_executor, soon};

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

/// Bytes that differ in every block.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 777 % 251) as u8).collect()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn kind_and_message<T: std::fmt::Debug>(outcome: Result<T, FileError>) -> (FileErrorKind, String) {
    let error = outcome.unwrap_err();
    (error.kind(), error.message().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn file_is_written_read_described_and_removed() {
    on_every_executor(async |executor| {
        let (folder, files) = (folder(), executor.files());
        let path = folder.path().join("a b%20é");
        files.write(&path, "hello").await.unwrap();
        assert_eq!(files.read(&path).await.unwrap(), "hello");
        let known = files.metadata(&path).await.unwrap();
        assert!(known.is_file && !known.is_directory && !known.is_symlink);
        assert_eq!(known.size, 5);
        let there = std::fs::metadata(&path).unwrap();
        assert_eq!(known.modified_at_ms / 1000, there.mtime());
        files.write(&path, "").await.unwrap();
        assert_eq!(files.read(&path).await.unwrap(), "");
        files.remove(&path, Remove::default()).await.unwrap();
        assert!(!path.exists());
        files.remove(&path, Remove::default()).await.unwrap();
        let strict = Remove {
            force: false,
            ..Remove::default()
        };
        let (kind, _) = kind_and_message(files.remove(&path, strict).await);
        assert_eq!(kind, FileErrorKind::NotFound);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_the_same_on_all_executors() {
    on_every_executor(async |executor| {
        let (folder, files) = (folder(), executor.files());
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("f"), "x").unwrap();
        symlink(at("f"), at("link")).unwrap();
        let missing = (
            FileErrorKind::NotFound,
            "No such file or directory (os error 2)".to_owned(),
        );
        assert_eq!(kind_and_message(files.read(at("no")).await), missing);
        assert_eq!(kind_and_message(files.open(at("no")).await), missing);
        assert_eq!(kind_and_message(files.metadata(at("no")).await), missing);
        assert_eq!(
            kind_and_message(files.read_directory(at("no")).await),
            missing
        );
        assert_eq!(kind_and_message(files.create(at("no/f")).await), missing);
        let failed = |words: &str| (FileErrorKind::Failed, words.to_owned());
        assert_eq!(
            kind_and_message(files.create_directory(at("f"), false).await),
            failed("File exists (os error 17)")
        );
        assert_eq!(
            kind_and_message(files.create(folder.path()).await),
            failed("Is a directory (os error 21)")
        );
        let invalid = |words: &str| (FileErrorKind::Invalid, words.to_owned());
        let strict = files.clone().without_links();
        let link = invalid("path contains a symbolic link");
        assert_eq!(kind_and_message(strict.read(at("link")).await), link);
        assert_eq!(kind_and_message(strict.metadata(at("link")).await), link);
        assert_eq!(
            kind_and_message(files.copy(folder.path(), at("c"), false).await),
            invalid("fs/copy requires recursive: true when sourcePath is a directory")
        );
        let (kind, words) = kind_and_message(files.read("/dev/null").await);
        assert_eq!(kind, FileErrorKind::Invalid, "{words}");
        let (kind, _) = kind_and_message(files.read("/a\0b").await);
        assert_eq!(kind, FileErrorKind::Invalid);
        let error = files.read(at("no")).await.unwrap_err();
        assert_eq!(error.path(), at("no"));
        assert_eq!(error.os_error(), Some(2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_access_has_its_own_kind() {
    if rustix::process::geteuid().is_root() {
        // Root is not denied access.
        return;
    }
    on_every_executor(async |executor| {
        let folder = folder();
        let path = folder.path().join("locked");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        let (kind, words) = kind_and_message(executor.files().read(&path).await);
        assert_eq!(kind, FileErrorKind::Denied, "{words}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_is_read_in_blocks_at_any_offset() {
    on_every_executor(async |executor| {
        let folder = folder();
        let path = folder.path().join("large");
        let all = content(3_000_001);
        std::fs::write(&path, &all).unwrap();
        let mut reader = executor.files().open(&path).await.unwrap();
        assert_eq!(reader.metadata().size, 3_000_001);
        // The open file stays the same.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another").unwrap();
        let mut read = Vec::new();
        soon("all of it", reader.read_to_end(&mut read))
            .await
            .unwrap();
        assert!(read == all, "{} bytes came", read.len());
        reader.seek_to(2_999_999);
        read.clear();
        reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, &all[2_999_999..]);
        assert_eq!(
            reader.read_at(1_234_567, 5).await.unwrap(),
            &all[1_234_567..][..5]
        );
        assert_eq!(reader.read_at(9_999_999, 5).await.unwrap(), "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_is_replaced_atomically() {
    on_every_executor(async |executor| {
        let folder = folder();
        let path = folder.path().join("f");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
        let mut writer = executor.files().create(&path).await.unwrap();
        let all = content(2_500_000);
        writer.write_all(&all).await.unwrap();
        writer.shutdown().await.unwrap();
        assert_eq!(writer.position(), 2_500_000);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        soon("the commit", writer.commit()).await.unwrap();
        assert!(std::fs::read(&path).unwrap() == all);
        let mode = std::fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o751);
        assert_eq!(names(folder.path()), ["f"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_writer_changes_nothing() {
    on_every_executor(async |executor| {
        let (folder, files) = (folder(), executor.files());
        let path = folder.path().join("f");
        let mut writer = files.create(&path).await.unwrap();
        writer.write_all(&content(700_000)).await.unwrap();
        writer.flush().await.unwrap();
        drop(writer);
        // A named temporary file is removed when the writer is dropped.
        soon("an empty folder", async {
            while !names(folder.path()).is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_reader_closes_its_file() {
    on_every_executor(async |executor| {
        let (folder, files) = (folder(), executor.files());
        let path = folder.path().join("f");
        std::fs::write(&path, "x").unwrap();
        // More than a connection may have open at once: each is closed when it is dropped.
        for _ in 0..300 {
            files.open(&path).await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_are_created_listed_walked_copied_and_removed() {
    on_every_executor(async |executor| {
        let (folder, files) = (folder(), executor.files());
        let at = |name: &str| folder.path().join(name);
        files.create_directory(at("d/e"), true).await.unwrap();
        files.write(at("d/e/f"), "x").await.unwrap();
        symlink("e", at("d/link")).unwrap();
        symlink("nowhere", at("d/broken")).unwrap();
        let listed = files.read_directory(at("d")).await.unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|entry| (entry.file_name.as_str(), entry.is_directory))
            .collect();
        assert_eq!(listed, [("e", true), ("link", true)]);
        let options = WalkOptions {
            max_depth: 8,
            max_directories: 100,
            max_entries: 100,
            follow_directory_symlinks: false,
            prune_hidden_directories: false,
        };
        let walk = files.walk(at("d"), options).await.unwrap();
        let found: Vec<_> = walk
            .entries
            .iter()
            .map(|entry| (entry.path.as_path().to_owned(), entry.kind))
            .collect();
        assert_eq!(
            found,
            [
                (at("d/e"), EntryKind::Directory),
                (at("d/e/f"), EntryKind::File)
            ]
        );
        assert!(!walk.truncated && walk.errors.is_empty());
        files.copy(at("d"), at("copy"), true).await.unwrap();
        assert_eq!(std::fs::read(at("copy/e/f")).unwrap(), b"x");
        let real = files.canonicalize(at("d/link/f")).await.unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        assert_eq!(real, base.join("d/e/f"));
        files.remove(at("d"), Remove::default()).await.unwrap();
        assert_eq!(names(folder.path()), ["copy"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relative_paths_start_at_the_working_directory() {
    on_every_executor(async |executor| {
        let cwd = executor.environment().await.unwrap().cwd.unwrap();
        let found = executor.files().canonicalize("").await.unwrap();
        assert_eq!(found, std::fs::canonicalize(cwd.as_path()).unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unenforceable_sandbox_is_rejected() {
    on_every_executor(async |executor| {
        let folder = folder();
        let files = executor.files().sandboxed(Sandbox::read_only("/").into());
        let path = folder.path().join("f");
        let (kind, words) = kind_and_message(files.write(&path, "x").await);
        assert_eq!(kind, FileErrorKind::Invalid);
        assert!(
            words.starts_with("sandbox intent cannot be enforced"),
            "{words}"
        );
        assert_eq!(kind_and_message(files.create(&path).await).1, words);
        assert!(!path.exists());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_executor_rejects_file_operations() {
    on_every_executor(async |executor| {
        let files: Files = executor.files();
        executor.close().await.unwrap();
        let error = files.metadata("/").await.unwrap_err();
        assert_eq!(error.kind(), FileErrorKind::Unavailable);
        assert_eq!(
            error.message(),
            "exec-server transport disconnected: the executor was closed"
        );
    })
    .await;
}

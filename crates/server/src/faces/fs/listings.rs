//! `fs/readDirectory` and `fs/walk`.

use outpost_files::{Clerk, EntryKind, Walk, WalkOptions};
use outpost_protocol::{
    FsDirectoryEntry, FsEntryKind, FsReadDirectoryParams, FsReadDirectoryResult, FsWalkEntry,
    FsWalkError, FsWalkOptions, FsWalkParams, FsWalkResult, PathUri, RpcError,
};
use serde::Serialize;

use super::Desk;
use crate::{connection::Reply, convert};

/// About how many bytes an entry takes in an answer besides its name.
const ENTRY_BYTES: usize = 64;

pub(crate) async fn read_directory(desk: Desk, params: FsReadDirectoryParams, reply: Reply) {
    let _turn = desk.listing().await;
    let read = async {
        let path = convert::path(params.path)?;
        let sandbox = params.sandbox.as_ref();
        let mut entries = desk
            .look(sandbox, move |files| files.read_directory(&path))
            .await?;
        entries.retain(|entry| params.broken_links || !entry.is_broken_link);
        let bytes = entries
            .iter()
            .map(|entry| entry.name.len() + ENTRY_BYTES)
            .sum();
        // A name that isn't UTF-8 is listed in a readable form: it is there, and
        // there is no other way to say so.
        let entries = entries.into_iter().map(|entry| FsDirectoryEntry {
            file_name: entry.name.to_string_lossy().into_owned(),
            is_directory: entry.is_directory,
            is_file: entry.is_file,
            is_broken_link: entry.is_broken_link,
        });
        let entries = entries.collect();
        Ok((FsReadDirectoryResult { entries }, bytes))
    };
    answer(&desk, read.await, reply).await;
}

pub(crate) async fn walk(desk: Desk, params: FsWalkParams, reply: Reply) {
    let _turn = desk.listing().await;
    let walked = async {
        let path = convert::path(params.path)?;
        let options = options(params.options);
        let walk = move |files: Clerk| files.walk(&path, options);
        let walk = desk.look(params.sandbox.as_ref(), walk).await?;
        let names = walk.entries.iter().map(|entry| &entry.path);
        let bytes = names.map(|path| path.as_os_str().len() + ENTRY_BYTES).sum();
        Ok((result(walk), bytes))
    };
    answer(&desk, walked.await, reply).await;
}

/// Answers once there is room: what is listed must not pile up in front of a
/// client that doesn't read.
async fn answer<T: Serialize>(desk: &Desk, listed: Result<(T, usize), RpcError>, reply: Reply) {
    match listed {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((result, bytes)) => {
            if let Some(room) = desk.room(bytes).await {
                reply.send_large(result, bytes, room);
            }
        }
    }
}

fn options(options: FsWalkOptions) -> WalkOptions {
    WalkOptions {
        max_depth: options.max_depth,
        max_directories: options.max_directories,
        max_entries: options.max_entries,
        follow_directory_symlinks: options.follow_directory_symlinks,
        prune_hidden_directories: options.prune_hidden_directories,
    }
}

fn result(walk: Walk) -> FsWalkResult {
    let entries = walk.entries.iter().map(|entry| FsWalkEntry {
        path: PathUri::from_path(&entry.path),
        kind: match entry.kind {
            EntryKind::Directory => FsEntryKind::Directory,
            EntryKind::File => FsEntryKind::File,
        },
    });
    let errors = walk.errors.iter().map(|error| FsWalkError {
        path: PathUri::from_path(&error.path),
        message: error.message.clone(),
    });
    FsWalkResult {
        entries: entries.collect(),
        errors: errors.collect(),
        truncated: walk.truncated,
    }
}

//! A file of the server that is being read.

use std::sync::{Arc, Mutex};

use outpost_protocol::{
    FsGetMetadataParams, FsGetMetadataResult, FsOpenParams, FsReadBlockParams, Method, PathUri,
    SandboxParams,
};
use tokio::sync::Semaphore;

use super::{
    core::lock,
    file_handle::{FileHandle, Purpose},
    line::{CallError, Line},
    place::Guard,
};
use crate::{
    Error,
    files::{Block, FileErrorKind, Opened, Source, Trouble, Working},
};

/// An open file, over as many connections as it takes.
///
/// A handle belongs to its connection. On the next one the file is opened again
/// by its path, which may lead to another file by then. The wire has no name for
/// the file itself, so what is known of it has to do: its birth, its last change
/// and its size, before it was opened, after it was opened, and after it was
/// opened again. Where all three are the same, so is the file.
pub(super) struct RemoteFile {
    guard: Arc<Guard>,
    path: PathUri,
    sandbox: Option<SandboxParams>,
    /// What was known before it was opened.
    before: FsGetMetadataResult,
    state: Mutex<State>,
    /// Held by whoever opens the file again, for all who want to go on reading.
    turn: Semaphore,
}

struct State {
    handle: Arc<FileHandle>,
    /// What was known after it was opened, once that has come.
    after: After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    NotAsked,
    Asked,
    Known(FsGetMetadataResult),
}

impl RemoteFile {
    pub(super) async fn open(
        guard: Arc<Guard>,
        path: PathUri,
        sandbox: Option<SandboxParams>,
    ) -> Result<Opened, Trouble> {
        loop {
            let line = guard.core.line().await?;
            let opened = async {
                let before = look(&line, &path, sandbox.as_ref()).await?;
                let params = open_params(&path, sandbox.as_ref());
                let handle = guard.core.file_handle(&line, params).await?;
                Ok((before, handle))
            };
            let (before, handle) = match opened.await {
                Ok(opened) => opened,
                Err(CallError::Lost(_)) => continue,
                Err(error) => return Err(Error::from(error).into()),
            };
            let state = State {
                handle: Arc::new(handle),
                after: After::NotAsked,
            };
            let file = RemoteFile {
                guard,
                path,
                sandbox,
                before,
                state: Mutex::new(state),
                turn: Semaphore::new(1),
            };
            return Ok(Opened {
                source: Arc::new(file),
                metadata: before,
            });
        }
    }

    /// Reads a block on whichever connection there is.
    async fn read(&self, offset: u64, len: u64) -> Result<Block, Trouble> {
        loop {
            let handle = self.handle().await?;
            let params = FsReadBlockParams {
                handle_id: handle.id.clone(),
                offset,
                len,
            };
            let (block, ()) = tokio::join!(
                handle.line.call(Method::FsReadBlock, &params),
                self.look_after(&handle)
            );
            match block {
                Err(CallError::Lost(_)) => {}
                Err(error) => return Err(Error::from(error).into()),
                Ok(block) => return whole(block, len),
            }
        }
    }

    /// Beside the first block, finds out what the file was after it was opened.
    /// If that fails, it stays unknown.
    async fn look_after(&self, handle: &FileHandle) {
        {
            let mut state = lock(&self.state);
            if state.after != After::NotAsked {
                return;
            }
            state.after = After::Asked;
        }
        let _asking = Asking(&self.state);
        let found = look(&handle.line, &self.path, self.sandbox.as_ref()).await;
        if let Ok(found) = found {
            lock(&self.state).after = After::Known(found);
        }
    }

    /// The handle to read with: the one there is, or one on the next connection.
    async fn handle(&self) -> Result<Arc<FileHandle>, Trouble> {
        if let Some(handle) = self.alive() {
            return Ok(handle);
        }
        let Ok(_turn) = self.turn.acquire().await else {
            unreachable!("the semaphore is never closed");
        };
        if let Some(handle) = self.alive() {
            return Ok(handle);
        }
        let handle = Arc::new(self.open_again().await?);
        lock(&self.state).handle = Arc::clone(&handle);
        Ok(handle)
    }

    fn alive(&self) -> Option<Arc<FileHandle>> {
        let handle = Arc::clone(&lock(&self.state).handle);
        Some(handle).filter(|handle| !handle.line.is_lost())
    }

    async fn open_again(&self) -> Result<FileHandle, Trouble> {
        let core = &self.guard.core;
        let changed = |words| Trouble::new(FileErrorKind::Changed, words);
        loop {
            let line = core.line().await?;
            if lock(&self.state).after != After::Known(self.before) {
                return Err(changed(
                    "the connection was lost before it was known which file was opened",
                ));
            }
            let opened = async {
                let params = open_params(&self.path, self.sandbox.as_ref());
                let handle = core.file_handle(&line, params).await?;
                let now = look(&line, &self.path, self.sandbox.as_ref()).await?;
                Ok((handle, now))
            };
            match opened.await {
                Ok((handle, now)) if now == self.before => return Ok(handle),
                Ok(_) => {
                    return Err(changed(
                        "the connection was lost, and the file has changed meanwhile",
                    ));
                }
                Err(CallError::Lost(_)) => {}
                Err(error) => {
                    let trouble = Trouble::from(Error::from(error));
                    return Err(trouble.of_another_file());
                }
            }
        }
    }
}

/// Whoever stops asking leaves it to the next one.
struct Asking<'a>(&'a Mutex<State>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.0);
        if state.after == After::Asked {
            state.after = After::NotAsked;
        }
    }
}

impl Source for RemoteFile {
    fn block(self: Arc<Self>, offset: u64, len: u64) -> Working<Block> {
        Box::pin(async move { self.read(offset, len).await })
    }
}

/// A block that is as long as was asked for, or the last one. The next was asked
/// for already, where this one should end: with any other length, bytes would be
/// missing or come twice.
fn whole(block: Block, len: u64) -> Result<Block, Trouble> {
    let has = block.chunk.len() as u64;
    match has == len || (has < len && block.eof) {
        true => Ok(block),
        false => Err(Trouble::new(
            FileErrorKind::Failed,
            format!("the server answers with {has} bytes where {len} were asked for"),
        )),
    }
}

fn open_params(path: &PathUri, sandbox: Option<&SandboxParams>) -> Purpose {
    Purpose::Read(FsOpenParams {
        handle_id: String::new(),
        path: path.clone().into(),
        sandbox: sandbox.cloned(),
    })
}

async fn look(
    line: &Line,
    path: &PathUri,
    sandbox: Option<&SandboxParams>,
) -> Result<FsGetMetadataResult, CallError> {
    let params = FsGetMetadataParams {
        path: path.clone().into(),
        follow_symlinks: true,
        sandbox: sandbox.cloned(),
    };
    line.call(Method::FsGetMetadata, &params).await
}

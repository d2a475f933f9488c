//! Finds and reads the files of a directory, within limits.

use std::path::{Path, PathBuf};

use outpost_files::FilesError;
use outpost_protocol::{
    EntryKind, FileOp, FsCanonicalizeParams, FsWalkParams, PathUri, PluginFiles, SkillFiles,
    Symlinks, TextFile, WalkOptions, WalkResult,
};

use super::reader::Reader;
use crate::dialects::fs::ResultMemory;

/// The largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The bytes of all files of one result.
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;
/// Files may be this many directories below the root.
const MAX_DEPTH: u64 = 6;
const MAX_DIRECTORIES: u64 = 2_000;
const MAX_ENTRIES: u64 = 20_000;

/// The directories of a plugin's manifest.
const MANIFESTS: [&str; 2] = [".codex-plugin/plugin.json", ".claude-plugin/plugin.json"];

/// The plugins and skills of a directory, as files.
#[derive(Default)]
pub(super) struct FoundFiles {
    pub(super) plugin: Option<PluginFiles>,
    pub(super) skills: Vec<SkillFiles>,
    pub(super) manifests: Vec<TextFile>,
}

/// Reads files of directories and counts their bytes.
pub(super) struct Search<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) warnings: Vec<String>,
    /// The bytes that were read.
    pub(super) bytes: usize,
}

impl<'a> Search<'a> {
    /// A search that has read `bytes` before.
    pub(super) fn new(reader: &'a Reader<'a>, bytes: usize) -> Self {
        Search {
            reader,
            warnings: Vec::new(),
            bytes,
        }
    }

    /// Reads the plugins and skills below a directory. Symbolic links below it are not followed.
    pub(super) fn read_root(&mut self, root: &Path) -> Result<FoundFiles, String> {
        let uri = PathUri::from_path(root);
        let inspected =
            |error: FilesError| format!("failed to inspect capability root {uri}: {error}");
        let metadata = self.reader.metadata(root).map_err(inspected)?;
        if !metadata.is_directory {
            return Err(format!("capability root {uri} is not a directory"));
        }
        let op = FileOp::Canonicalize(FsCanonicalizeParams { path: uri.clone() });
        let (real, _) = self.reader.perform(op).map_err(inspected)?;
        let real = PathBuf::try_from(real).map_err(|_| inspected(FilesError::NoReply))?;
        let (walk, _memory) = self.walk(&real).map_err(inspected)?;
        if walk.truncated {
            self.warnings.push(format!(
                "capability root {uri} is too large; the rest is left out"
            ));
        }
        let files = walk.entries.into_iter();
        let files = files.filter(|entry| entry.kind == EntryKind::File);
        let relative =
            files.filter_map(|entry| Some(entry.path.strip_prefix(&real).ok()?.to_owned()));
        let mut relative: Vec<PathBuf> = relative.collect();
        relative.sort();
        let root = WalkedRoot {
            path: root,
            real: &real,
            files: &relative,
        };
        let mut found = FoundFiles::default();
        let own = MANIFESTS
            .iter()
            .find_map(|name| self.read(&root, Path::new(name)));
        found.plugin = own.map(|manifest| PluginFiles {
            manifest,
            mcp_config: self.read(&root, Path::new(".mcp.json")),
            apps_config: self.read(&root, Path::new(".app.json")),
        });
        for path in &relative {
            if path.ends_with("SKILL.md") {
                let beside = path.with_file_name("agents").join("openai.yaml");
                if let Some(instructions) = self.read(&root, path) {
                    let metadata = self.read(&root, &beside);
                    found.skills.push(SkillFiles {
                        instructions,
                        metadata,
                    });
                }
            } else if MANIFESTS.iter().any(|manifest| path.ends_with(manifest)) {
                found.manifests.extend(self.read(&root, path));
            }
        }
        Ok(found)
    }

    fn walk(&self, real: &Path) -> Result<(WalkResult, ResultMemory), FilesError> {
        let op = FileOp::Walk(FsWalkParams {
            path: PathUri::from_path(real),
            options: WalkOptions {
                max_depth: MAX_DEPTH,
                max_directories: MAX_DIRECTORIES,
                max_entries: MAX_ENTRIES,
                follow_directory_symlinks: false,
                prune_hidden_directories: false,
            },
        });
        let (reply, memory) = self.reader.perform(op)?;
        let walk = WalkResult::try_from(reply).map_err(|_| FilesError::NoReply)?;
        Ok((walk, memory))
    }

    /// Reads a file that the walk has found.
    fn read(&mut self, root: &WalkedRoot<'_>, relative: &Path) -> Option<TextFile> {
        root.files
            .binary_search_by(|file| file.as_path().cmp(relative))
            .ok()?;
        let path = PathUri::from_path(&root.path.join(relative));
        let left = MAX_TOTAL_BYTES.saturating_sub(self.bytes) as u64;
        let real = root.real.join(relative);
        let limit = MAX_FILE_BYTES.min(left);
        match self.reader.read_text(&real, Symlinks::Reject, limit) {
            Ok(contents) => {
                self.bytes += contents.len();
                Some(TextFile { path, contents })
            }
            Err(error) => {
                self.warnings
                    .push(format!("failed to read {path}: {error}"));
                None
            }
        }
    }
}

/// A root as the client names it, its path without links, and the files below it, sorted.
struct WalkedRoot<'a> {
    path: &'a Path,
    real: &'a Path,
    files: &'a [PathBuf],
}

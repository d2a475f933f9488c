//! Configuration, plugins and skills on the host, for clients that run their agent elsewhere.
//!
//! Read-only and bounded. Links are not followed out of a searched directory.
//!
//! - `config`: `environmentConfig/read`; `toml_selection`: the selected keys of a file
//! - `roots`: `capabilityRoots/discoverV1`
//! - `user_plugins`: `capabilities/discoverV2`; `front_matter`: the head of a `SKILL.md`
//! - `search`: finds the files of a directory; `reader`: reads files, within the memory of the connection

mod config;
mod front_matter;
mod reader;
mod roots;
mod search;
mod toml_selection;
mod user_plugins;

pub(crate) use config::read_config;
pub(crate) use roots::discover_roots;
pub(crate) use user_plugins::discover_host;

use std::path::PathBuf;

use serde::Serialize;

use crate::{Host, connection::Reply, dialects::fs::FileService};

/// The directory of the user's configuration: `$CODEX_HOME`, or `.codex` in the home directory.
fn codex_home(host: &Host) -> PathBuf {
    let set = host.environment.get("CODEX_HOME").map(PathBuf::from);
    set.filter(|path| path.is_absolute())
        .or_else(|| {
            let home = host.info.user_home_dir.as_ref();
            home.map(|home| home.as_path().join(".codex"))
        })
        .unwrap_or_else(|| PathBuf::from("/etc/codex"))
}

/// Sends a result that may have megabytes, and that `memory` is held for.
async fn send<T: Serialize, M>(
    files: &FileService,
    reply: Reply,
    result: T,
    (contents, memory): (usize, M),
) {
    // JSON may escape each byte of a file as two.
    let bytes = contents * 2 + 64 * 1024;
    let reserved = files.connection().reserve(bytes).await;
    if let Some((reservation, reply)) = reply.accept(reserved) {
        reply.send_large(result, bytes, reservation);
    }
    drop(memory);
}

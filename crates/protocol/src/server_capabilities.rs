//! Extensions of this server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One boolean per extension beyond the released servers, true only if it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCapabilities {
    /// `delivery: "acked"` and `process/ack`; `acked` of `http/request`, with `http/request/ack` and
    /// `http/request/cancel`.
    pub acked: bool,
    /// Output in binary frames.
    pub binary_frames: bool,
    /// `closeStdin` of `process/write`.
    pub close_stdin: bool,
    /// `process/resize`, and `size` of `process/start`.
    pub resize: bool,
    /// Signals other than `interrupt`.
    pub signals: bool,
    /// `timeoutMs` of `process/start`.
    pub timeouts: bool,
    /// `process/list`.
    pub process_list: bool,
    /// `session/list` and `session/close`.
    pub session_list: bool,
    /// `takeover` of `initialize`.
    pub takeover: bool,
    /// `tree` of `process/terminate`.
    pub terminate_tree: bool,
    /// `fs/createStream` and related methods.
    pub fs_write_stream: bool,
    /// Watching files.
    pub fs_watch: bool,
    /// `limits` of `process/start`.
    pub limits: bool,
}

//! `fs/*`: files and folders where the processes run.

use outpost_types::Symlinks;
use outpost_types::optional_member::{negative_as_zero, parse_str};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::base64::{Base64Bytes, Base64Text, as_text};
use crate::{FileOp, InvalidParams, Method, PathUri, SandboxParams, parse_params};

/// Params of `fs/readFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsReadFileParams")]
pub struct FsReadFileParams<P = PathUri> {
    /// The file.
    pub path: P,
    /// Follows symbolic links in the path instead of rejecting them.
    #[serde(
        rename = "followSymlinks",
        default,
        skip_serializing_if = "Symlinks::are_followed"
    )]
    pub symlinks: Symlinks,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/readFile`.
///
/// `B` holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct FsReadFileResult<B = Vec<u8>> {
    /// The content.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub data_base64: B,
}

/// Params of `fs/writeFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsWriteFileParams")]
pub struct FsWriteFileParams<P = PathUri> {
    /// The file, which is created if it does not exist.
    pub path: P,
    /// The new content.
    #[schemars(with = "Base64Bytes")]
    pub data_base64: Base64Text,
    /// Follows symbolic links in the path instead of rejecting them.
    #[serde(
        rename = "followSymlinks",
        default,
        skip_serializing_if = "Symlinks::are_followed"
    )]
    pub symlinks: Symlinks,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenParams {
    /// The id of the handle, chosen by the client.
    pub handle_id: String,
    /// The file.
    pub path: PathUri,
    /// Whether it is read or replaced.
    #[serde(default, skip_serializing_if = "FsOpenMode::is_read")]
    pub mode: FsOpenMode,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// `mode` of `fs/open`. Unlike other optional members it may not be `null`, because released servers
/// reject that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum FsOpenMode {
    /// The file is read.
    #[default]
    Read,
    /// The file is created or truncated, and written in place.
    Replace,
}

impl FsOpenMode {
    fn is_read(&self) -> bool {
        *self == Self::Read
    }
}

impl<'de> Deserialize<'de> for FsOpenMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_str(deserializer, "string or map", |text| match text {
            "read" => Ok(Self::Read),
            "replace" => Ok(Self::Replace),
            _ => Err(format!(
                "unknown variant `{text}`, expected `read` or `replace`"
            )),
        })
    }
}

/// Result of `fs/open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenResult {
    /// The id from the request.
    pub handle_id: String,
}

/// Params of `fs/readBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadBlockParams {
    /// The handle.
    pub handle_id: String,
    /// The offset of the block.
    pub offset: u64,
    /// The length of the block. It is shorter at the end of the file.
    #[serde(deserialize_with = "negative_as_zero")]
    pub len: u64,
}

/// Result of `fs/readBlock`.
///
/// `B` holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct FsReadBlockResult<B = Vec<u8>> {
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
    /// Whether the block is shorter than requested.
    pub eof: bool,
}

/// Params of `fs/close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCloseParams {
    /// The handle of an open file or of a stream.
    pub handle_id: String,
}

/// Params of `fs/createStream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateStreamParams {
    /// The id of the stream, chosen by the client.
    pub handle_id: String,
    /// The file that the commit replaces.
    pub path: PathUri,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/writeBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteBlockParams {
    /// The stream, or a file that was opened to be replaced.
    pub handle_id: String,
    /// The offset of the block.
    pub offset: u64,
    /// The bytes.
    pub chunk: Base64Bytes,
}

/// Params of `fs/commit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCommitParams {
    /// The stream.
    pub handle_id: String,
}

/// A file operation with its sandbox: a request of one of the methods that are file operations.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRequest {
    /// The operation.
    pub op: FileOp,
    /// The sandbox of the operation.
    pub sandbox: Option<SandboxParams>,
}

impl FileRequest {
    /// Parses the params of a method; none if the method is no file operation.
    #[must_use]
    pub fn parse(method: Method, params: Option<&RawValue>) -> Option<Result<Self, InvalidParams>> {
        let op = method.parse_op(params)?;
        Some(Self::with_sandbox(op, params))
    }

    /// Adds the sandbox of the params to an operation.
    pub(crate) fn with_sandbox(
        op: Result<FileOp, InvalidParams>,
        params: Option<&RawValue>,
    ) -> Result<Self, InvalidParams> {
        #[derive(Deserialize)]
        struct SandboxMember {
            sandbox: Option<SandboxParams>,
        }
        let op = op?;
        let SandboxMember { sandbox } = parse_params(params)?;
        Ok(FileRequest { op, sandbox })
    }
}

// The params of a file operation on the wire. Without a doc comment, because the description in the
// schema is that of `P`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{P}")]
pub(crate) struct Sandboxed<'a, P> {
    #[serde(flatten)]
    pub(crate) params: &'a P,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<&'a SandboxParams>,
}

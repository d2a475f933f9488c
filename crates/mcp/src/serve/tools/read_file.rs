//! The tool `read_file`.

use std::{fmt, path::Path};

use outpost_client::{FileReader, Files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MIN_SIZE, encoding::Encoding, in_range};
use crate::serve::{
    CallContext, Tool, ToolError,
    files::line_range::{LinePage, LineRange, LineReader, write_numbered},
    text,
};

/// Reads a file or a part of it: by lines, with line numbers, or by bytes. If the content
/// exceeds the limit, the response says where to continue.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// The file, absolute or relative to the default working directory.
    path: String,
    /// The first line to read, from 1.
    #[schemars(range(min = 1), extend("default" = 1))]
    start_line: Option<u64>,
    /// The maximum number of lines to read.
    #[schemars(range(min = 1), extend("default" = 1000))]
    max_lines: Option<u64>,
    /// Read bytes from this offset instead of lines. They are returned as base64 if they are not
    /// UTF-8.
    byte_offset: Option<u64>,
    /// The maximum size of content in the response, in bytes.
    #[schemars(range(min = 100, max = 400000), extend("default" = 50000))]
    max_bytes: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Content {
    path: String,
    /// The content of this part of the file: lines without numbers, or bytes.
    content: String,
    /// The encoding of the content.
    encoding: Encoding,
    /// The size of the whole file.
    size_bytes: u64,
    /// The first line of the content, if lines were read.
    start_line: Option<u64>,
    /// The number of lines of the whole file, if its end was reached.
    total_lines: Option<u64>,
    /// The start_line to continue with, if there is more.
    next_line: Option<u64>,
    /// The offset of the content, if bytes were read.
    byte_offset: Option<u64>,
    /// The byte_offset to continue with, if there is more.
    next_byte_offset: Option<u64>,
    /// Whether long lines were cut.
    lines_cut: bool,
    /// Whether some bytes are not UTF-8 and were replaced by U+FFFD; read them with byte_offset.
    not_utf8: bool,
    /// Whether some lines end with "\r\n", which edit_file must match.
    crlf: bool,
    #[serde(skip)]
    display: String,
}

impl Tool for ReadFile {
    type Output = Content;

    async fn call(self, context: &CallContext<'_>) -> Result<Content, ToolError> {
        let limits = context.server.limits();
        let sizes = MIN_SIZE..=limits.file_bytes_max;
        let max_bytes = in_range("max_bytes", self.max_bytes, limits.file_bytes, sizes)?;
        let (files, path) = context.server.locate(Some(&self.path)).await?;
        let by_lines = self.start_line.is_some() || self.max_lines.is_some();
        let range = LineRange {
            first: in_range("start_line", self.start_line, 1, 1..=u64::MAX)?,
            lines: in_range("max_lines", self.max_lines, limits.lines, 1..=u64::MAX)?,
            bytes: max_bytes,
            line_bytes: limits.line_bytes,
        };
        let work = async {
            match self.byte_offset {
                Some(_) if by_lines => Err(ToolError::LinesOrBytes),
                Some(offset) => read_bytes(&files, &path, offset, max_bytes).await,
                None => read_lines(&files, &path, range).await,
            }
        };
        context.run_file_operation("reading", work).await
    }
}

/// Opens a file, with a helpful error for a directory.
async fn open(files: &Files, path: &Path) -> Result<FileReader, ToolError> {
    if files.metadata(path).await?.is_directory {
        return Err(ToolError::IsDirectory {
            path: path.to_owned(),
        });
    }
    Ok(files.open(path).await?)
}

async fn read_lines(files: &Files, path: &Path, range: LineRange) -> Result<Content, ToolError> {
    let mut file = open(files, path).await?;
    let mut reader = LineReader::new(range);
    let ended = loop {
        let block = file.next_bytes().await?;
        if block.is_empty() {
            break true;
        }
        if !reader.push(&block) {
            break false;
        }
    };
    let size = file.metadata().size;
    if reader.is_binary() {
        return Err(ToolError::Binary {
            path: path.to_owned(),
            size,
        });
    }
    Ok(Content::of_lines(path, size, range, reader.finish(ended)))
}

async fn read_bytes(
    files: &Files,
    path: &Path,
    offset: u64,
    max_bytes: usize,
) -> Result<Content, ToolError> {
    let file = open(files, path).await?;
    let bytes = file.read_at(offset, max_bytes as u64).await?;
    let size = file.metadata().size.max(offset + bytes.len() as u64);
    // An incomplete character at the end is left for the next part.
    let length = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    };
    let (content, encoding) = Encoding::encode(&bytes[..length]);
    let next = offset + length as u64;
    Ok(Content {
        path: path.display().to_string(),
        display: content.clone(),
        content,
        encoding,
        size_bytes: size,
        byte_offset: Some(offset),
        next_byte_offset: (next < size && length > 0).then_some(next),
        ..Content::default()
    })
}

impl Content {
    fn of_lines(path: &Path, size: u64, range: LineRange, page: LinePage) -> Self {
        let (mut content, mut display) = (String::new(), String::new());
        for line in &page.lines {
            content.push_str(&line.text);
            content.push_str(line.end);
            let mut text = line.text.clone();
            if line.omitted > 0 {
                text.push_str(&format!("… ({} more bytes in this line)", line.omitted));
            }
            write_numbered(&mut display, line.number, &text);
        }
        Content {
            path: path.display().to_string(),
            content,
            size_bytes: size,
            start_line: Some(range.first),
            total_lines: page.total,
            next_line: page.next,
            lines_cut: page.lines.iter().any(|line| line.omitted > 0),
            not_utf8: page.lines.iter().any(|line| line.lossy),
            crlf: page.lines.iter().any(|line| line.end == "\r\n"),
            display,
            ..Content::default()
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = text::bytes(self.size_bytes);
        match self.total_lines {
            Some(total) => {
                let lines = text::count(total, "line", "lines");
                write!(f, "{} ({lines}, {size})", self.path)?;
            }
            None => write!(f, "{} ({size})", self.path)?,
        }
        if self.encoding == Encoding::Base64 {
            f.write_str(", as base64")?;
        }
        for (name, next) in [
            ("start_line", self.next_line),
            ("byte_offset", self.next_byte_offset),
        ] {
            if let Some(next) = next {
                write!(f, "; there is more, continue with \"{name}\": {next}")?;
            }
        }
        if self.lines_cut {
            f.write_str("; long lines are cut, read them with \"byte_offset\"")?;
        }
        if self.not_utf8 {
            f.write_str("; invalid UTF-8 is shown as \u{fffd}, read it with \"byte_offset\"")?;
        }
        if self.crlf {
            f.write_str("; lines end with \"\\r\\n\"")?;
        }
        let unterminated = !self.content.is_empty() && !self.content.ends_with('\n');
        if self.total_lines.is_some() && unterminated {
            f.write_str("; no line break at the end of the file")?;
        }
        if self.display.is_empty() {
            f.write_str(match self.size_bytes {
                0 => "; the file is empty",
                _ => "; this part is empty",
            })?;
        }
        write!(f, "\n{}", self.display)
    }
}

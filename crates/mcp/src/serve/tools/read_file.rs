//! What is in a file.

use std::path::Path;

use outpost_client::{FileReader, Files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{encoding::Encoding, ranged, sized};
use crate::serve::{
    Answer, Call, Effect, Mishap, Tool, Workbench,
    files::view::{End, Seen, View, Wanted, numbered},
    words,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Which file, absolute or relative to the default directory.
    path: String,
    /// The first line to read, from 1.
    #[schemars(range(min = 1), extend("default" = 1))]
    start_line: Option<u64>,
    /// How many lines to read.
    #[schemars(range(min = 1), extend("default" = 1000))]
    max_lines: Option<u64>,
    /// Read bytes from this offset on instead of lines. What isn't UTF-8 comes as base64.
    byte_offset: Option<u64>,
    /// How much the answer has at most, in bytes.
    #[schemars(range(min = 100, max = 400000), extend("default" = 50000))]
    max_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Content {
    path: String,
    /// What is in this part of the file: its lines without numbers, or its bytes.
    content: String,
    /// How the content is written.
    encoding: Encoding,
    /// How large the whole file is.
    size_bytes: u64,
    /// The line the content begins with, if lines were read.
    start_line: Option<u64>,
    /// How many lines the whole file has, if its end was seen.
    total_lines: Option<u64>,
    /// The line to read on with, if there is more: give it as start_line.
    next_line: Option<u64>,
    /// The offset the content begins at, if bytes were read.
    byte_offset: Option<u64>,
    /// The offset to read on with, if there is more: give it as byte_offset.
    next_byte_offset: Option<u64>,
    /// Whether lines were too long to be shown whole.
    lines_cut: bool,
    /// Whether some bytes of these lines are no UTF-8. They are shown as marks; byte_offset gives
    /// them as they are.
    not_utf8: bool,
    /// Whether some of these lines end with "\r\n", which edit_file has to be given too.
    crlf: bool,
    #[serde(skip)]
    shown: String,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a file, or a part of a large one: by lines, which are \
        shown with their numbers, or by bytes. If there is more than fits, the answer says where \
        to read on.";
    const EFFECT: Effect = Effect::Looks;

    type Answer = Content;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Content, Mishap> {
        let bounds = bench.bounds();
        let most = sized("max_bytes", self.max_bytes, bounds.file, bounds.file_max)?;
        let footing = bench.footing().await?;
        let path = bench.path(&footing, Some(&self.path));
        let files = bench.files(&footing);
        let by_lines = self.start_line.is_some() || self.max_lines.is_some();
        let lines = Wanted {
            first: ranged("start_line", self.start_line, 1, (1, u64::MAX))?,
            lines: ranged("max_lines", self.max_lines, bounds.lines, (1, u64::MAX))?,
            bytes: most,
            line_bytes: bounds.line_bytes,
        };
        let work = async {
            match self.byte_offset {
                Some(_) if by_lines => Err(Mishap::LinesOrBytes),
                Some(offset) => bytes(&files, &path, offset, most).await,
                None => by_line(&files, &path, lines).await,
            }
        };
        let say = || "reading".to_owned();
        call.wait(bounds.search, say, work).await?
    }
}

/// Opens a file to be read; a directory is told what it is.
async fn open(files: &Files, path: &Path) -> Result<FileReader, Mishap> {
    let known = files.metadata(path).await?;
    if known.is_directory {
        return Err(Mishap::IsDirectory {
            path: path.to_owned(),
        });
    }
    Ok(files.open(path).await?)
}

async fn by_line(files: &Files, path: &Path, wanted: Wanted) -> Result<Content, Mishap> {
    let mut file = open(files, path).await?;
    let mut view = View::new(wanted);
    let ended = loop {
        let block = file.next_bytes().await?;
        if block.is_empty() {
            break true;
        }
        if !view.take(&block) {
            break false;
        }
    };
    let size = file.metadata().size;
    if view.is_binary() {
        return Err(Mishap::Binary {
            path: path.to_owned(),
            size,
        });
    }
    Ok(Content::of_lines(path, size, wanted, view.finish(ended)))
}

async fn bytes(files: &Files, path: &Path, offset: u64, most: usize) -> Result<Content, Mishap> {
    let file = open(files, path).await?;
    let bytes = file.read_at(offset, most as u64).await?;
    let size = file.metadata().size.max(offset + bytes.len() as u64);
    // A character that is cut off at the end is left for the next part.
    let whole = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    };
    let (content, encoding) = Encoding::encode(&bytes[..whole]);
    let next = offset + whole as u64;
    Ok(Content {
        path: path.display().to_string(),
        shown: content.clone(),
        content,
        encoding,
        size_bytes: size,
        start_line: None,
        total_lines: None,
        next_line: None,
        byte_offset: Some(offset),
        next_byte_offset: (next < size && whole > 0).then_some(next),
        lines_cut: false,
        not_utf8: false,
        crlf: false,
    })
}

impl Content {
    fn of_lines(path: &Path, size: u64, wanted: Wanted, seen: Seen) -> Self {
        let (mut content, mut shown) = (String::new(), String::new());
        for line in &seen.lines {
            content.push_str(&line.text);
            let mut text = line.text.clone();
            if line.cut > 0 {
                text = format!("{text}… ({} more bytes in this line)", line.cut);
            }
            content.push_str(line.end.as_str());
            numbered(&mut shown, line.number, &text);
        }
        Content {
            path: path.display().to_string(),
            content,
            encoding: Encoding::Utf8,
            size_bytes: size,
            start_line: Some(wanted.first),
            total_lines: seen.total,
            next_line: seen.next,
            byte_offset: None,
            next_byte_offset: None,
            lines_cut: seen.lines.iter().any(|line| line.cut > 0),
            not_utf8: seen.lines.iter().any(|line| line.marred),
            crlf: seen.lines.iter().any(|line| line.end == End::CrLf),
            shown,
        }
    }
}

impl Answer for Content {
    fn words(&self) -> String {
        let size = words::bytes(self.size_bytes);
        let mut said = format!("{} ({size})", self.path);
        if let Some(total) = self.total_lines {
            said = format!(
                "{} ({}, {size})",
                self.path,
                words::count(total, "line", "lines")
            );
        }
        if self.encoding == Encoding::Base64 {
            said.push_str(", as base64");
        }
        if let Some(next) = self.next_line {
            said.push_str(&format!(
                "; there is more, read on with \"start_line\": {next}"
            ));
        }
        if let Some(next) = self.next_byte_offset {
            said.push_str(&format!(
                "; there is more, read on with \"byte_offset\": {next}"
            ));
        }
        if self.lines_cut {
            said.push_str("; long lines are cut, read them with \"byte_offset\"");
        }
        if self.not_utf8 {
            said.push_str(
                "; some of it isn't UTF-8 and shown as \u{fffd}, read it with \"byte_offset\"",
            );
        }
        if self.crlf {
            said.push_str("; lines end with \"\\r\\n\"");
        }
        let is_open = !self.content.is_empty() && !self.content.ends_with('\n');
        if self.total_lines.is_some() && is_open {
            said.push_str("; there is no line break at the end");
        }
        if self.shown.is_empty() {
            said.push_str(match self.size_bytes {
                0 => "; it is empty",
                _ => "; there is nothing in this part",
            });
        }
        format!("{said}\n{}", self.shown)
    }
}

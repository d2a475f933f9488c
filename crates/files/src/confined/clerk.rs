//! The operations, wherever they are done.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::answer::{self, Answer};
use super::doing::perform;
use super::line::Line;
use super::masks::Masks;
use super::request::Request;
use super::writer::{Kind, Writer};
use crate::write::fill;
use crate::{
    DirectoryEntry, Files, FilesError, Links, Metadata, OpenFile, Remove, Walk, WalkOptions,
};

/// Does file operations: here, or confined at the other end of a line.
#[derive(Debug)]
pub enum Clerk {
    /// Here, with everything that this process may do.
    Here(Here),
    /// There.
    Confined(Confined),
}

/// Somebody in this process.
#[derive(Debug)]
pub struct Here {
    /// The limits that it keeps.
    pub files: Files,
    /// Where directories may stand that count as none.
    pub held: Vec<PathBuf>,
    /// Whether one does, which is asked where an operation could come upon it.
    pub is_held: fn(&Path) -> bool,
}

/// Somebody at the other end of a line.
#[derive(Debug)]
pub struct Confined {
    /// How to reach it.
    pub line: Line,
    /// The limits that it keeps.
    pub files: Files,
    /// What it will find that isn't what it looks like.
    pub masks: Masks,
}

impl Clerk {
    /// Somebody here, to whom everything is what it looks like.
    #[must_use]
    pub fn here(files: Files) -> Self {
        Self::Here(Here {
            files,
            held: Vec::new(),
            is_held: |_| false,
        })
    }

    /// Opens a regular file.
    pub fn open(&self, path: &Path, links: Links) -> Result<OpenFile, FilesError> {
        let file = self.ask(Request::OpenToRead(path.to_owned(), links))?;
        Ok(OpenFile::of(file.file()?, self.files().limits))
    }

    /// All bytes of a regular file.
    pub fn read(&self, path: &Path, links: Links) -> Result<Vec<u8>, FilesError> {
        self.open(path, links)?.read()
    }

    /// Makes `bytes` all that is in a file.
    pub fn write(&self, path: &Path, bytes: &[u8], links: Links) -> Result<(), FilesError> {
        crate::regular::check_size(bytes.len() as u64)?;
        let file = self.ask(Request::OpenToWrite(path.to_owned(), links))?;
        fill(file.file()?, bytes)
    }

    /// Makes a directory.
    pub fn create_directory(
        &self,
        path: &Path,
        recursive: bool,
        links: Links,
    ) -> Result<(), FilesError> {
        let request = Request::CreateDirectory(path.to_owned(), recursive, links);
        self.ask(request)?.done()
    }

    /// What a path leads to, by way of all its links.
    pub fn metadata(&self, path: &Path, links: Links) -> Result<Metadata, FilesError> {
        match self.ask(Request::Metadata(path.to_owned(), links))?.answer {
            Answer::Metadata(found) => Ok(found),
            _ => Err(FilesError::Unanswered),
        }
    }

    /// The same place without any link in its path.
    pub fn canonicalize(&self, path: &Path) -> Result<PathBuf, FilesError> {
        match self.ask(Request::Canonicalize(path.to_owned()))?.answer {
            Answer::Path(found) => Ok(found),
            _ => Err(FilesError::Unanswered),
        }
    }

    /// What is in a directory, by name.
    pub fn read_directory(&self, path: &Path) -> Result<Vec<DirectoryEntry>, FilesError> {
        match self.ask(Request::ReadDirectory(path.to_owned()))?.answer {
            Answer::Entries(entries) => Ok(entries),
            _ => Err(FilesError::Unanswered),
        }
    }

    /// What is below a directory, level by level.
    pub fn walk(&self, path: &Path, options: WalkOptions) -> Result<Walk, FilesError> {
        match self.ask(Request::Walk(path.to_owned(), options))?.answer {
            Answer::Walk(walk) => Ok(walk),
            _ => Err(FilesError::Unanswered),
        }
    }

    /// Removes a file, a link or a directory.
    pub fn remove(&self, path: &Path, how: Remove) -> Result<(), FilesError> {
        self.ask(Request::Remove(path.to_owned(), how))?.done()
    }

    /// Copies a file, a link, or a directory with everything below it.
    pub fn copy(
        &self,
        source: &Path,
        destination: &Path,
        recursive: bool,
    ) -> Result<(), FilesError> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        let request = Request::Copy(source, destination, recursive);
        self.ask(request)?.done()
    }

    /// Starts to replace a file, which needn't exist. Whoever is at the other end of the line stays
    /// there for as long as it is being written.
    pub fn create_stream(self, path: &Path) -> Result<Writer, FilesError> {
        Ok(Writer(match self {
            Self::Here(here) => Kind::Here(here.files.create_stream(path)?),
            Self::Confined(there) => {
                let request = Request::CreateStream(path.to_owned());
                let draft = there.ask(&request)?.file()?;
                Kind::Confined { draft, there }
            }
        }))
    }

    fn files(&self) -> &Files {
        match self {
            Self::Here(here) => &here.files,
            Self::Confined(there) => &there.files,
        }
    }

    fn ask(&self, request: Request) -> Result<Answered, FilesError> {
        match self {
            Self::Here(here) => here.ask(request),
            Self::Confined(there) => there.ask(&request),
        }
    }
}

/// What came back.
pub(super) struct Answered {
    answer: Answer,
    file: Option<OwnedFd>,
}

impl Answered {
    pub(super) fn done(self) -> Result<(), FilesError> {
        match self.answer {
            Answer::Done => Ok(()),
            _ => Err(FilesError::Unanswered),
        }
    }

    fn file(self) -> Result<File, FilesError> {
        match (self.answer, self.file) {
            (Answer::File, Some(file)) => Ok(file.into()),
            // It was sent, and this process has no room for another descriptor.
            (Answer::File, None) => Err(rustix::io::Errno::MFILE.into()),
            _ => Err(FilesError::Unanswered),
        }
    }
}

impl Here {
    fn ask(&self, request: Request) -> Result<Answered, FilesError> {
        let masks = Masks {
            held: self.held.clone(),
            ..Masks::default()
        };
        let masks = masks.about(&request, self.is_held);
        let (answer, file) = perform(self.files, &masks, request)?;
        Ok(Answered { answer, file })
    }
}

impl Confined {
    /// Asks, and waits for the answer.
    pub(super) fn ask(&self, request: &Request) -> Result<Answered, FilesError> {
        let asked = request.encode(&self.files, &self.masks);
        self.line.send(&asked, None).map_err(lost)?;
        let message = self.line.receive().map_err(lost)?;
        let message = message.ok_or(FilesError::Unanswered)?;
        let outcome = answer::decode(&message.bytes).ok_or(FilesError::Unanswered)?;
        Ok(Answered {
            answer: outcome?,
            file: message.file,
        })
    }
}

fn lost(error: io::Error) -> FilesError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => FilesError::Slow,
        _ => FilesError::Unanswered,
    }
}

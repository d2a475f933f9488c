//! The course of a copy.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use outpost_client::{Error, FileError, FileErrorKind};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Site, Tally,
    aim::{Aim, Astray, There},
    stream,
    tree::{Job, Search},
};

/// How many files are brought over at the same time: a small one is mostly
/// waiting.
const FILES_AT_ONCE: usize = 4;
/// How many files may be found ahead of those that are copied, so that it is known
/// how much is left.
const FILES_AHEAD: usize = 65_536;

/// How to copy, and whom to tell.
pub(crate) struct Course<'a> {
    /// Directories too.
    pub(crate) recursive: bool,
    /// Whether somebody wants to know how much there is, before it is copied.
    pub(crate) sizes: bool,
    pub(crate) tally: Arc<Tally>,
    /// Hears of whatever wasn't copied.
    pub(crate) complain: &'a (dyn Fn(&anyhow::Error) + Sync),
}

/// Copies; where there is no site it is our own input or output. What can't be
/// copied is reported and counted, and the rest is copied all the same.
pub(crate) async fn copy(
    sources: &[Option<Site>],
    destination: Option<&Site>,
    course: &Course<'_>,
) -> anyhow::Result<()> {
    match (sources, destination) {
        ([Some(source)], None) => to_output(source, course).await,
        ([None], None) | (_, None) => bail!("only one file can be copied to standard output"),
        (sources, Some(destination)) => to_place(sources, destination, course).await,
    }
}

async fn to_output(source: &Site, course: &Course<'_>) -> anyhow::Result<()> {
    let metadata = source.files.metadata(&source.path).await?;
    course.tally.found(metadata.size);
    course.tally.all_found();
    let from = (&source.files, source.path.as_path());
    let mut stdout = tokio::io::stdout();
    let copied = stream::file_to_stream(from, &mut stdout, &course.tally).await;
    of_place_or(copied)
}

async fn to_place(
    sources: &[Option<Site>],
    destination: &Site,
    course: &Course<'_>,
) -> anyhow::Result<()> {
    let there = there(destination).await?;
    let mut aim = Aim::new(&destination.path, there, sources.len());
    for source in sources {
        let copied = match source {
            None => from_input(destination, &mut aim, course).await,
            Some(source) => from_place(source, destination, &mut aim, course).await,
        };
        copied.or_else(|error| course.trouble(error))?;
    }
    course.tally.all_found();
    Ok(())
}

async fn from_input(destination: &Site, aim: &mut Aim, course: &Course<'_>) -> anyhow::Result<()> {
    let to = aim
        .of_file(None)
        .map_err(|astray| named(destination, astray))?;
    course.tally.found(0);
    let mut stdin = tokio::io::stdin();
    let to = (&destination.files, to.as_path());
    stream::stream_to_file(&mut stdin, to, &course.tally).await
}

/// A file, or a directory with everything below it.
async fn from_place(
    source: &Site,
    destination: &Site,
    aim: &mut Aim,
    course: &Course<'_>,
) -> anyhow::Result<()> {
    let metadata = source.files.metadata(&source.path).await?;
    let path = &source.path;
    if metadata.is_directory && !course.recursive {
        bail!("{path:?} is a directory, which is copied with -r");
    }
    let to = match metadata.is_directory {
        true => aim.of_directory(path),
        false => aim.of_file(Some(path)),
    };
    let to = to.map_err(|astray| named(destination, astray))?;
    check_apart(source, destination, &to, metadata.is_directory).await?;
    let (jobs, found) = mpsc::channel(FILES_AHEAD);
    let searching = async {
        // Whoever copies ends when nothing more can be found.
        let jobs = jobs;
        let search = Search {
            from: &source.files,
            to: &destination.files,
            jobs: &jobs,
            course,
        };
        match metadata.is_directory {
            true => search.tree(path.clone(), to).await,
            false => search.file(path.clone(), to, metadata.size).await,
        }
    };
    tokio::try_join!(searching, carry(source, destination, found, course))?;
    Ok(())
}

/// Brings over what is found, some files at a time.
async fn carry(
    source: &Site,
    destination: &Site,
    mut found: mpsc::Receiver<Job>,
    course: &Course<'_>,
) -> anyhow::Result<()> {
    // Dropped with whoever copies, and everything under way with it.
    let mut under_way = JoinSet::new();
    loop {
        let job = tokio::select! {
            job = found.recv(), if under_way.len() < FILES_AT_ONCE => job,
            Some(copied) = under_way.join_next() => {
                settle(copied, course)?;
                continue;
            }
        };
        let Some(Job { from, to }) = job else {
            break;
        };
        let (ours, theirs) = (source.files.clone(), destination.files.clone());
        let tally = Arc::clone(&course.tally);
        under_way.spawn(async move {
            let copied = stream::file_to_file((&ours, &from), (&theirs, &to), &tally).await;
            copied.map_err(anyhow::Error::from)
        });
    }
    while let Some(copied) = under_way.join_next().await {
        settle(copied, course)?;
    }
    Ok(())
}

fn settle(
    copied: Result<anyhow::Result<()>, tokio::task::JoinError>,
    course: &Course<'_>,
) -> anyhow::Result<()> {
    match copied {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => course.trouble(error),
        Err(error) => Err(error).context("a copy ended before its time"),
    }
}

async fn there(destination: &Site) -> anyhow::Result<There> {
    match destination.files.metadata(&destination.path).await {
        Ok(metadata) if metadata.is_directory => Ok(There::Directory),
        Ok(_) => Ok(There::File),
        Err(error) if error.kind() == FileErrorKind::NotFound => Ok(There::Nothing),
        Err(error) => of_place_or(Err(error.into())).map(|()| There::Nothing),
    }
}

/// A copy of a file onto itself would do nothing, and one of a directory into
/// itself would never end. Places that are the same by another name can't be
/// known.
async fn check_apart(
    source: &Site,
    destination: &Site,
    to: &Path,
    directory: bool,
) -> anyhow::Result<()> {
    if source.server != destination.server {
        return Ok(());
    }
    let original = source.files.canonicalize(&source.path).await?;
    let Some(copy) = canonical(destination, to).await? else {
        return Ok(());
    };
    let path = &source.path;
    if directory && copy.starts_with(&original) {
        bail!("cannot copy the directory {path:?} into itself");
    }
    if copy == original {
        bail!("{path:?} and {to:?} are the same file");
    }
    Ok(())
}

/// Where a copy will be, whether or not there is something yet; none if even the
/// directory isn't there.
async fn canonical(place: &Site, path: &Path) -> Result<Option<PathBuf>, FileError> {
    let missing = |error: &FileError| error.kind() == FileErrorKind::NotFound;
    match place.files.canonicalize(path).await {
        Ok(path) => return Ok(Some(path)),
        Err(error) if missing(&error) => {}
        Err(error) => return Err(error),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    match place.files.canonicalize(parent).await {
        Ok(parent) => Ok(Some(parent.join(name))),
        Err(error) if missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn named(destination: &Site, astray: Astray) -> anyhow::Error {
    match astray {
        Astray::Repeated { .. } => astray.into(),
        _ => anyhow::anyhow!("{:?} {astray}", destination.path),
    }
}

/// What is wrong with a file; what is wrong with its place is an error, however often
/// it is asked.
pub(crate) fn of_place(error: anyhow::Error) -> anyhow::Result<anyhow::Error> {
    if error.is::<Error>() {
        return Err(error);
    }
    let of_place = error.downcast_ref::<FileError>().and_then(FileError::place);
    match of_place {
        // It is there, and can't do that with this one.
        Some(Error::NotAnnounced { .. }) | None => Ok(error),
        Some(place) => Err(anyhow::Error::new(place.clone()).context(error.to_string())),
    }
}

fn of_place_or(outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    outcome.map_err(|error| of_place(error).unwrap_or_else(|error| error))
}

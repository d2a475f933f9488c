//! What is in a directory.

use std::{fmt::Write as _, path::PathBuf};

use outpost_client::{FileError, Files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{
    ranged,
    strays::{Nature, Target},
    survey::{Seen, Sight, Survey},
    together::together,
};
use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench, words};

/// The deepest that a listing goes.
const DEEPEST: u64 = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// Which directory, absolute or relative to the default one, which is what is listed if none is
    /// given.
    path: Option<String>,
    /// How many levels to list: 1 is what is directly in it.
    #[schemars(range(min = 1, max = 20), extend("default" = 1))]
    depth: Option<u64>,
    /// Look into directories whose name begins with a dot as well, when several levels are listed.
    include_hidden: Option<bool>,
    /// Tell the size of each file, which takes a little longer.
    sizes: Option<bool>,
    /// How many entries the answer has at most.
    #[schemars(range(min = 1, max = 5000), extend("default" = 300))]
    max_entries: Option<u64>,
    /// How many entries to leave out at the beginning, to read on after an answer that was cut.
    #[schemars(range(min = 0), extend("default" = 0))]
    skip_entries: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    path: String,
    /// What is there, level by level and by name.
    entries: Vec<Entry>,
    /// How many entries there are in all, as far as they were looked at.
    total_entries: u64,
    /// The skip_entries to read on with, if there are more.
    next_skip: Option<u64>,
    /// Whether there was too much to look at all of it, or it took too long.
    incomplete: bool,
    /// How many directories could not be looked into.
    unreadable: u64,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// Relative to the directory that was listed.
    name: String,
    kind: Kind,
    /// What a link leads to, which isn't looked into; nothing if that can't be seen.
    leads_to: Option<Goal>,
    /// How large it is, if that was asked for.
    size_bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Directory,
    File,
    /// A symbolic link.
    Link,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Goal {
    Directory,
    File,
    Other,
    /// What it leads to isn't there.
    Nothing,
}

impl From<Target> for Goal {
    fn from(target: Target) -> Self {
        match target {
            Target::Directory => Goal::Directory,
            Target::File => Goal::File,
            Target::Other => Goal::Other,
            Target::Nothing => Goal::Nothing,
        }
    }
}

impl Entry {
    fn new(name: String, nature: Nature) -> Self {
        let (kind, leads_to) = match nature {
            Nature::Directory => (Kind::Directory, None),
            Nature::File => (Kind::File, None),
            Nature::Link(target) => (Kind::Link, target.map(Goal::from)),
            Nature::Other => (Kind::Other, None),
        };
        Entry {
            name,
            kind,
            leads_to,
            size_bytes: None,
        }
    }
}

impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List a directory";
    const DESCRIPTION: &'static str = "Lists what is in a directory, and in those below it if \
        depth says so. Symbolic links are listed as what they are, and not followed. To find files by name or by what is in them, use search_files.";
    const EFFECT: Effect = Effect::Looks;

    type Answer = Listing;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Listing, Mishap> {
        let bounds = bench.bounds();
        let depth = ranged("depth", self.depth, 1, (1, DEEPEST))?;
        let range = (1, bounds.entries_max as u64);
        let most = ranged(
            "max_entries",
            self.max_entries,
            bounds.entries as u64,
            range,
        )?;
        let footing = bench.footing().await?;
        let path = bench.path(&footing, self.path.as_deref());
        let files = bench.files(&footing);
        let deadline = Instant::now() + bounds.search;
        let work = async {
            let known = files.metadata(&path).await?;
            if !known.is_directory {
                return Err(Mishap::NotDirectory { path: path.clone() });
            }
            // A walk doesn't follow links, and who names one means what it leads to.
            let root = match known.is_symlink {
                true => files.canonicalize(&path).await?,
                false => path.clone(),
            };
            let survey = Survey {
                files: &files,
                root: &root,
                depth,
                hidden: self.include_hidden.unwrap_or(false),
                at_once: bounds.search_at_once,
                deadline,
            };
            let found = survey.take().await?;
            let total = found.sights.len() as u64;
            let skip = self.skip_entries.unwrap_or(0).min(total);
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let shown = found.sights.into_iter().skip(index(skip));
            let shown = shown.take(index(most));
            // Names are bounded together, since each of them may be a long path.
            let mut bytes = 0;
            let shown = shown.take_while(|sight| {
                let fits = bytes < bounds.listed_bytes;
                bytes += sight.name.len();
                fits
            });
            let shown: Vec<Sight> = shown.collect();
            let end = skip + shown.len() as u64;
            let look = Look {
                files: files.clone(),
                root,
                sizes: self.sizes.unwrap_or(false),
                deadline,
            };
            let looked = together(shown, bounds.search_at_once, |sight| look.clone().at(sight));
            let (mut entries, mut late) = (Vec::new(), false);
            for glance in looked.await {
                match glance? {
                    Glance::Entry(entry) => entries.push(entry),
                    Glance::Late(entry) => {
                        entries.push(entry);
                        late = true;
                    }
                    Glance::Gone => {}
                }
            }
            Ok(Listing {
                path: path.display().to_string(),
                entries,
                total_entries: total,
                next_skip: (end < total).then_some(end),
                incomplete: found.incomplete || late,
                unreadable: found.unreadable,
            })
        };
        let say = || "listing".to_owned();
        call.wait(bounds.search, say, work).await?
    }
}

/// Looks at what is shown, as far as that is needed.
#[derive(Clone)]
struct Look {
    files: Files,
    root: PathBuf,
    sizes: bool,
    deadline: Instant,
}

/// What a look has shown.
enum Glance {
    Entry(Entry),
    /// There was no time to see what it is.
    Late(Entry),
    /// It isn't there any more.
    Gone,
}

impl Look {
    /// This fails only with the place.
    async fn at(self, sight: Sight) -> Result<Glance, FileError> {
        let nature = match sight.seen {
            Seen::As(nature) => nature,
            Seen::Unlooked(stray) => {
                match timeout_at(self.deadline, stray.nature(&self.files)).await {
                    Ok(looked) => match looked? {
                        Some(nature) => nature,
                        None => return Ok(Glance::Gone),
                    },
                    Err(_) => {
                        return Ok(Glance::Late(Entry::new(sight.name, Nature::Link(None))));
                    }
                }
            }
        };
        let mut entry = Entry::new(sight.name, nature);
        if self.sizes && entry.kind == Kind::File {
            let known = self.files.metadata(self.root.join(&entry.name));
            let Ok(known) = timeout_at(self.deadline, known).await else {
                return Ok(Glance::Late(entry));
            };
            entry.size_bytes = known.ok().map(|known| known.size);
        }
        Ok(Glance::Entry(entry))
    }
}

impl Answer for Listing {
    fn words(&self) -> String {
        let count = words::count(self.total_entries, "entry", "entries");
        let mut said = format!("{} ({count})", self.path);
        if self.incomplete {
            said.push_str("; there is more below, too much to look at: list a part of it");
        }
        if self.unreadable > 0 {
            let _ = write!(said, "; {} could not be looked into", self.unreadable);
        }
        if let Some(next) = self.next_skip {
            let _ = write!(
                said,
                "; there is more, read on with \"skip_entries\": {next}"
            );
        }
        for entry in &self.entries {
            let end = match (entry.kind, entry.leads_to) {
                (Kind::Directory, _) => "/",
                (Kind::File, _) => "",
                (Kind::Link, Some(Goal::Directory)) => "  (link to a directory)",
                (Kind::Link, Some(Goal::File)) => "  (link to a file)",
                (Kind::Link, Some(Goal::Other)) => "  (link)",
                (Kind::Link, Some(Goal::Nothing)) => "  (link that leads nowhere)",
                (Kind::Link, None) => "  (link to something that can't be seen)",
                (Kind::Other, _) => "  (neither file nor directory)",
            };
            let size = entry
                .size_bytes
                .map(|size| format!("  {}", words::bytes(size)));
            let _ = write!(said, "\n{}{end}{}", entry.name, size.unwrap_or_default());
        }
        said
    }
}

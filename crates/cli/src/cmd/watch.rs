//! `outpost watch`: prints changes of files, or runs a command when they change.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use outpost_client::{FileChanges, FileError, FileWatch, Terminate, WatchOptions};
use outpost_engine::sandbox::Level;
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::run::{self, Run};
use crate::{
    args::{Location, OnOrLaunch, text},
    console::{Attachment, Notice, OnTermination, Outcome, Signals, attach},
    endpoint::Endpoint,
    exit,
    render::{
        out::{self, note},
        visible::visible_json,
    },
    target::{self, Leftovers, Target},
    transfer::{LocationResolver, file_error},
};

/// Time in which changes of several paths become one batch. Those of one path are gathered by the
/// executor.
const MERGE_WITHIN: Duration = Duration::from_millis(50);
/// Grace period of processes that a command leaves.
const GRACE: Duration = Duration::from_secs(2);

/// Arguments of `outpost watch`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost watch src                                 prints each changed path
  outpost watch src Cargo.toml -- cargo test        runs a command after each change
  outpost watch --on build /srv/app -- make         watches and runs on a server
  outpost watch build:/srv/app/log -- ./fetch.sh    watches there, runs here
  outpost watch --json /etc | jq -c .paths
  outpost watch --once /run/ready                   waits for a change

The exit code is 128+N after signal N, such as 130 after Ctrl-C; 1 if a path can't be watched; 127
or 126 if the command is not found or can't be executed; 255 if a server can't be reached. With
--once it is 0, or the command's own.")]
pub(crate) struct Watch {
    /// Watch only the entries of a directory, not everything below it
    #[arg(long)]
    pub(crate) no_recursive: bool,

    /// The default: watch everything below a directory
    #[arg(short, long, hide = true, overrides_with = "no_recursive")]
    pub(crate) recursive: bool,

    /// End after the first changes, or after the command that they started
    #[arg(long)]
    pub(crate) once: bool,

    /// Print a JSON object for each batch of changes
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// Files and directories, which need not exist: URL:PATH on a server, or PATH on this host or
    /// the server of --on
    #[arg(value_name = "PATH", required = true, value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,

    /// A command to run after each batch of changes, here or on the server of --on
    #[arg(last = true, value_name = "COMMAND", value_parser = text())]
    pub(crate) command: Vec<String>,
}

/// Watches until a signal arrives, or something fails.
pub(crate) async fn watch(args: &Watch) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let server = args.on.endpoint()?;
    let mut locations = LocationResolver::new(&args.on, "outpost watch")?;
    let opening = Batches::open(&mut locations, args);
    let opened = signals.unless_ended(opening).await;
    let outcome = match opened {
        Ok(Ok(mut batches)) if args.command.is_empty() => {
            print_changes(args, &mut batches, &mut signals).await
        }
        Ok(Ok(mut batches)) => {
            run_on_changes(args, server.as_ref(), &mut batches, &mut signals).await
        }
        Ok(Err(error)) => Err(error),
        Err(signal) => Ok(exit::of_signal(signal)),
    };
    let _ = signals.unless_ended(locations.disconnect()).await;
    outcome
}

/// Prints each batch of changes.
async fn print_changes(
    args: &Watch,
    batches: &mut Batches,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    loop {
        let batch = match signals.unless_ended(batches.next()).await {
            Ok(batch) => batch?,
            Err(signal) => return Ok(exit::of_signal(signal)),
        };
        let has_changes = batch.has_changes();
        let json = args.json;
        // On a separate thread, because stdout may block.
        tokio::task::spawn_blocking(move || batch.print(json)).await??;
        if args.once && has_changes {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Runs the command after each batch of changes.
async fn run_on_changes(
    args: &Watch,
    server: Option<&Endpoint>,
    batches: &mut Batches,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let opening = Target::open(server, "outpost watch", || {
        target::local(None, Level::default())
    });
    let target = match signals.unless_ended(opening).await {
        Ok(target) => target?,
        Err(signal) => return Ok(exit::of_signal(signal)),
    };
    let outcome = async {
        loop {
            let batch = match signals.unless_ended(batches.next()).await {
                Ok(batch) => batch?,
                Err(signal) => return Ok(exit::of_signal(signal)),
            };
            batch.tell_missed();
            if !batch.has_changes() {
                continue;
            }
            match run_command(args, server, &target, signals).await? {
                CommandEnd::Exited(code) if args.once => return Ok(code),
                CommandEnd::Exited(_) => {}
                CommandEnd::Final(code) => return Ok(code),
            }
        }
    };
    let outcome = outcome.await;
    let _ = signals
        .unless_ended(target.close(Leftovers::Processes))
        .await;
    outcome
}

/// How a command ended.
enum CommandEnd {
    /// The command exited without being killed.
    Exited(ExitCode),
    /// The command could not be started, or a signal or an error ends this program too.
    Final(ExitCode),
}

async fn run_command(
    args: &Watch,
    server: Option<&Endpoint>,
    target: &Target,
    signals: &mut Signals,
) -> anyhow::Result<CommandEnd> {
    let command = Run {
        command: args.command.clone(),
        ..Run::default()
    };
    let start = run::program(&command, server)?;
    let starting = target.executor.start(start);
    let started = target.started(starting, &args.command[0], signals).await;
    let process = match started {
        Ok(process) => process,
        Err(not_started) => return Ok(CommandEnd::Final(not_started.code)),
    };
    let attachment = Attachment {
        process: &process,
        remote: target.remote.as_ref(),
        tty: false,
        stdin: None,
        since: 0,
        held_while_stopped: false,
        on_termination: OnTermination::Terminate,
        until: None,
        notice: Notice::next_to(None, None),
    };
    let outcome = attach(attachment, signals).await;
    let exited = match &outcome {
        Outcome::Exited(code) | Outcome::ExitedWithLeftovers(code) => Some(*code),
        _ => None,
    };
    let code = exit::after(&process, outcome).await;
    // Without leftovers it has no effect; released servers do not support it.
    let _ = process
        .terminate_with(Terminate::new().grace(GRACE).tree())
        .await;
    if let Some(signal) = signals.forwarded() {
        return Ok(CommandEnd::Final(exit::of_signal(signal)));
    }
    match exited {
        Some(0) => {}
        Some(_) if args.once => {}
        Some(code) => note(&format!(
            "the command exited with {code}; waiting for changes"
        )),
        None => return Ok(CommandEnd::Final(code)),
    }
    Ok(CommandEnd::Exited(code))
}

/// Changes that are reported together, with the paths as the user writes them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Batch {
    paths: BTreeSet<PathBuf>,
    missed: bool,
    /// Directories whose changes are missed until they can be read.
    unreadable: BTreeSet<PathBuf>,
}

impl Batch {
    fn merge(&mut self, other: Batch) {
        self.paths.extend(other.paths);
        self.missed |= other.missed;
        self.unreadable.extend(other.unreadable);
    }

    /// Whether something has changed, or may have.
    fn has_changes(&self) -> bool {
        self.missed || !self.paths.is_empty()
    }

    fn tell_missed(&self) {
        for directory in &self.unreadable {
            note(&format!(
                "cannot read {directory:?}: changes in it are missed until its permissions are changed"
            ));
        }
        if self.missed {
            note("changes may have been missed");
        }
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        if json {
            let paths: Vec<_> = paths.collect();
            let mut line = json!({"paths": paths, "missed": self.missed});
            if !self.unreadable.is_empty() {
                let directories = self.unreadable.iter().map(|path| path.to_string_lossy());
                line["unreadable"] = directories.collect();
            }
            return Ok(out::raw_lines([visible_json(&line.to_string())])?);
        }
        self.tell_missed();
        match io::stdout().is_terminal() {
            true => out::lines(paths)?,
            // Programs need the names as they are.
            false => out::raw_lines(paths)?,
        }
        Ok(())
    }
}

/// The changes of all watches.
struct Batches {
    received: mpsc::Receiver<Result<Batch, FileError>>,
    /// A task for each watch, and one for each server that reports its connection.
    _tasks: JoinSet<()>,
}

impl Batches {
    /// Opens all watches, and prints that they are open.
    async fn open(locations: &mut LocationResolver, args: &Watch) -> anyhow::Result<Self> {
        let options = WatchOptions {
            recursive: !args.no_recursive,
        };
        let mut watches = Vec::new();
        for (location, address) in args.paths.iter().zip(locations.addresses(&args.paths)?) {
            let file = locations.open(address).await?;
            let watch = file.files.watch(&file.path, options).await;
            let watch = watch.map_err(|error| match file_error(error.into()) {
                Ok(error) | Err(error) => error,
            })?;
            watches.push((watch, location.given()));
        }
        let names: Vec<_> = watches
            .iter()
            .map(|(_, given)| given.to_string_lossy())
            .collect();
        note(&format!("watching {}", names.join(", ")));
        let (batches, received) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        for remote in locations.servers() {
            let (remote, notice) = (remote.clone(), Notice::next_to(None, None));
            tasks.spawn(async move { notice.follow(Some(&remote)).await });
        }
        for (watch, given) in watches {
            tasks.spawn(forward(watch, given, batches.clone()));
        }
        Ok(Batches {
            received,
            _tasks: tasks,
        })
    }

    /// Waits for changes. Not cancel safe.
    async fn next(&mut self) -> anyhow::Result<Batch> {
        let mut batch = self.receive().await?;
        let until = Instant::now() + MERGE_WITHIN;
        while let Ok(next) = timeout_at(until, self.receive()).await {
            batch.merge(next?);
        }
        Ok(batch)
    }

    async fn receive(&mut self) -> anyhow::Result<Batch> {
        match self.received.recv().await {
            Some(Ok(batch)) => Ok(batch),
            Some(Err(error)) => match file_error(error.into()) {
                Ok(error) | Err(error) => Err(error),
            },
            None => anyhow::bail!("all watches have ended"),
        }
    }
}

/// Forwards the changes of a watch until it ends. While the channel is full, the watch gathers changes.
async fn forward(
    mut watch: FileWatch,
    given: PathBuf,
    batches: mpsc::Sender<Result<Batch, FileError>>,
) {
    loop {
        let next = watch.next().await;
        let is_last = next.is_err();
        let next = next.map(|changes| batch(&given, watch.path(), changes));
        if batches.send(next).await.is_err() || is_last {
            return;
        }
    }
}

/// Replaces the watched path by the path that the user has given.
fn batch(given: &Path, watched: &Path, changes: FileChanges) -> Batch {
    let as_given = |path: PathBuf| match path.strip_prefix(watched) {
        Ok(rest) if rest.as_os_str().is_empty() => given.to_owned(),
        Ok(rest) => given.join(rest),
        Err(_) => path,
    };
    Batch {
        paths: changes.paths.into_iter().map(as_given).collect(),
        missed: changes.missed,
        unreadable: changes.unreadable.into_iter().map(as_given).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn paths_begin_as_they_were_given() {
        let shown = |given: &str| {
            let changes = FileChanges {
                paths: paths(&["/w/src", "/w/src/a/b", "/w/srcs"]),
                unreadable: paths(&["/w/src/secret"]),
                ..FileChanges::default()
            };
            let batch = batch(given.as_ref(), "/w/src".as_ref(), changes);
            let shown = batch.paths.into_iter().chain(batch.unreadable);
            shown.collect::<Vec<_>>()
        };
        let here = ["/w/srcs", "src/", "src/a/b", "src/secret"];
        assert_eq!(shown("src/"), paths(&here));
        let there = [
            "/w/srcs",
            "build:/w/src",
            "build:/w/src/a/b",
            "build:/w/src/secret",
        ];
        assert_eq!(shown("build:/w/src"), paths(&there));
    }

    #[test]
    fn merged_batches_have_all_paths_once() {
        let mut batch = Batch {
            paths: paths(&["a", "c"]).into_iter().collect(),
            ..Batch::default()
        };
        batch.merge(Batch {
            paths: paths(&["b", "c"]).into_iter().collect(),
            missed: true,
            ..Batch::default()
        });
        assert_eq!(
            batch.paths.into_iter().collect::<Vec<_>>(),
            paths(&["a", "b", "c"])
        );
        assert!(batch.missed);
    }
}

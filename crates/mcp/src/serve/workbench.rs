//! What all calls share.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use outpost_client::{Error, FileError, Files, PathUri, Sandbox, Start};
use rmcp::model::{CallToolResult, ErrorData, JsonObject};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    Bounds, Call, Ground, Job, Mishap, Roster, Row,
    ground::Footing,
    tools::{self, CommandLine},
    turns::Turns,
};

/// How a workbench is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Where commands start and relative paths begin, instead of where the place
    /// is itself.
    pub cwd: Option<String>,
    /// Variables for every command, on top of what the place has.
    pub env: BTreeMap<String, String>,
    /// Where commands run, in words, if that isn't here.
    pub name: Option<String>,
    /// What commands and file operations are confined to, if they are.
    pub confinement: Option<Confinement>,
    /// Bounds and times.
    pub bounds: Bounds,
}

/// What everything is confined to.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// What it is called.
    pub profile: String,
    /// For work in some directory; it is moved to where commands start.
    pub sandbox: Sandbox,
}

/// The tools, with what they need.
pub struct Workbench {
    ground: Arc<dyn Ground>,
    setup: Setup,
    /// What is known of the place that was used last.
    footing: RwLock<Arc<Footing>>,
    /// Where commands start if they are confined: it decides what they may write, so
    /// a place that is elsewhere when it comes back doesn't change it.
    workspace: Option<PathBuf>,
    pub(super) roster: Roster,
    pub(super) turns: Turns,
    calls: Semaphore,
    /// The conversation is over.
    pub(super) over: CancellationToken,
}

impl Workbench {
    /// Tools for a place, which has to be there. What is confined needs a directory
    /// that somebody has told, since a guess might open what was to stay closed.
    pub async fn new(ground: Arc<dyn Ground>, setup: Setup) -> Result<Self, Error> {
        let footing = Footing::on(ground.place().await?).await?;
        let workspace = match setup.confinement {
            Some(_) => {
                let told = footing.told_base(setup.cwd.as_deref());
                Some(plain(&told.ok_or(Error::NoDirectory)?))
            }
            None => None,
        };
        let mut prefix = uuid::Uuid::new_v4().simple().to_string();
        prefix.truncate(4);
        Ok(Workbench {
            ground,
            footing: RwLock::new(Arc::new(footing)),
            workspace,
            roster: Roster::new(prefix),
            turns: Turns::default(),
            calls: Semaphore::new(setup.bounds.calls),
            over: CancellationToken::new(),
            setup,
        })
    }

    /// Finds out whether the place can confine what is to be confined. What it
    /// can't, it doesn't do, so this only says so early.
    pub async fn try_confinement(&self) -> Result<(), FileError> {
        if self.setup.confinement.is_some() {
            let footing = self.last_footing();
            let path = self.path(&footing, None);
            self.files(&footing).metadata(path).await?;
        }
        Ok(())
    }

    /// Lets go of all processes. What still runs is ended, at once.
    pub async fn close(&self) {
        self.over.cancel();
        self.roster.close().await;
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.setup.bounds
    }

    /// Calls a tool by its name; none if there is no such tool.
    pub(super) async fn perform(
        &self,
        name: &str,
        arguments: JsonObject,
        call: &Call,
    ) -> Option<Result<CallToolResult, ErrorData>> {
        let row: &Row = tools::TABLE.iter().find(|row| row.name == name)?;
        let Ok(_permit) = self.calls.try_acquire() else {
            let calls = self.bounds().calls;
            return Some(Mishap::TooManyCalls { calls }.answer());
        };
        Some((row.perform)(arguments, self, call).await)
    }

    /// The place as it is now.
    pub(super) async fn footing(&self) -> Result<Arc<Footing>, Mishap> {
        let place = self.ground.place().await?;
        let known = self.last_footing();
        if Arc::ptr_eq(&known.place, &place) {
            return Ok(known);
        }
        let found = Arc::new(Footing::on(place).await?);
        let mut footing = self.footing.write().unwrap_or_else(PoisonError::into_inner);
        *footing = Arc::clone(&found);
        Ok(found)
    }

    fn last_footing(&self) -> Arc<Footing> {
        let footing = self.footing.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&footing)
    }

    /// Where a path leads, as seen from where commands start. There are no dots in
    /// it, as in the paths that a place answers with, which are compared with it.
    pub(super) fn path(&self, footing: &Footing, path: Option<&str>) -> PathBuf {
        let base = match &self.workspace {
            Some(workspace) => workspace.clone(),
            None => footing.base(self.setup.cwd.as_deref()),
        };
        match path {
            Some(path) => plain(&base.join(footing.at_home(path))),
            None => plain(&base),
        }
    }

    /// The files of the place, as far as they are within reach.
    pub(super) fn files(&self, footing: &Footing) -> Files {
        let files = footing.place.files();
        match self.sandbox() {
            Some(sandbox) => files.confined(sandbox.into()),
            None => files,
        }
    }

    fn sandbox(&self) -> Option<Sandbox> {
        let confinement = self.setup.confinement.as_ref()?;
        let sandbox = confinement.sandbox.clone();
        Some(sandbox.moved_to(self.workspace.as_ref()?))
    }

    /// Starts a command, ready to be looked at.
    pub(super) async fn start(
        &self,
        line: CommandLine,
        tty: Option<(u16, u16)>,
        stdin: bool,
    ) -> Result<Arc<Job>, Mishap> {
        let footing = self.footing().await?;
        let command = line.words();
        let mut start = Start::new(line.argv(&footing.shell))
            .cwd(self.path(&footing, line.cwd.as_deref()))
            .inherit_env()
            .envs(self.setup.env.clone())
            .envs(line.env);
        if let Some(sandbox) = self.sandbox() {
            start = start.sandbox(sandbox);
        }
        if let Some((rows, cols)) = tty {
            start = start.size(rows, cols);
        } else if stdin {
            start = start.stdin();
        }
        let place = &*footing.place;
        self.roster
            .start(place, start, command, tty.is_some(), self.bounds())
            .await
    }

    /// What a model is told before it uses anything.
    pub(super) fn instructions(&self) -> String {
        let footing = self.last_footing();
        let machine = match &self.setup.name {
            Some(name) => format!("the machine behind {name}"),
            None => "this machine".to_owned(),
        };
        let confined = match &self.setup.confinement {
            Some(Confinement { profile, .. }) => format!(
                " Commands and file operations are confined to the profile {profile}: what it \
                 doesn't allow fails for want of permission, and trying it another way doesn't help."
            ),
            None => String::new(),
        };
        format!(
            "Runs commands and uses files on {machine} ({}). Commands start in {}, where relative \
             paths begin too; command lines are understood by {}. Use run_command for what ends \
             by itself, and start_process with read_output for what goes on, such as servers and \
             programs to talk to. Output that is too long for an answer is cut in the middle, and \
             the answer says how to read the rest. A command that fails is no error of its tool: \
             look at exit_code. Whatever still runs is ended with this session.{confined}",
            footing.os,
            self.path(&footing, None).display(),
            footing.shell,
        )
    }
}

/// Without the dots in it.
fn plain(path: &Path) -> PathBuf {
    PathUri::from_path(path).into_path()
}

#[cfg(test)]
#[path = "workbench_tests.rs"]
mod tests;

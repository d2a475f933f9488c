//! The program that the stages are.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program that does nothing but call [`stage`](super::stage) with the arguments behind these,
/// before it has a second thread.
///
/// For a program that can be told to, its own is the best one: `/proc/self/exe`, which is still the
/// same when somebody has put another version in its place.
#[derive(Clone, Debug)]
pub struct StageCommand {
    /// Where it is; no `PATH` is searched.
    pub program: PathBuf,
    /// What it is told. Text, since it is passed on by bubblewrap.
    pub args: Vec<String>,
}

impl StageCommand {
    /// The arguments for one stage, the name first: in lists of processes it goes by our own.
    pub(super) fn argv(&self, stage: &str) -> Vec<OsString> {
        let name = std::env::args_os().next();
        let name = name.unwrap_or_else(|| self.program.clone().into_os_string());
        let words = self.args.iter().map(OsString::from);
        let stage = OsString::from(stage);
        std::iter::once(name).chain(words).chain([stage]).collect()
    }

    /// Of our environment only what it takes to load our program: it has no use for the rest, and
    /// neither has bubblewrap.
    pub(super) fn environment() -> Vec<(OsString, OsString)> {
        let loads = |name: &OsString| name.as_encoded_bytes().starts_with(b"LD_");
        std::env::vars_os()
            .filter(|(name, _)| loads(name))
            .collect()
    }
}

//! The command that runs the helper.

use std::ffi::OsString;
use std::path::PathBuf;

/// A command whose program calls [`run_helper`](crate::run_helper) with the arguments that follow
/// [`args`](Self::args), before it starts a second thread.
///
/// A server uses its own binary as `/proc/self/exe`, which still names the running version after an
/// upgrade replaced the file.
#[derive(Clone, Debug)]
pub struct HelperCommand {
    /// The path of the program. `PATH` is not searched.
    pub program: PathBuf,
    /// Leading arguments. They are text because bubblewrap passes them on.
    pub args: Vec<String>,
}

impl HelperCommand {
    /// Returns the arguments for one mode of the helper, starting with our own `argv[0]`, which
    /// process lists show.
    pub(in crate::linux) fn argv(&self, mode: &str) -> Vec<OsString> {
        let name = std::env::args_os().next();
        let name = name.unwrap_or_else(|| self.program.clone().into_os_string());
        let args = self.args.iter().map(OsString::from);
        let mode = OsString::from(mode);
        std::iter::once(name).chain(args).chain([mode]).collect()
    }

    /// Returns the environment of the helper and of bubblewrap: only the variables that the dynamic
    /// loader may need.
    pub(in crate::linux) fn environment() -> Vec<(OsString, OsString)> {
        let is_for_loader = |name: &OsString| name.as_encoded_bytes().starts_with(b"LD_");
        std::env::vars_os()
            .filter(|(name, _)| is_for_loader(name))
            .collect()
    }
}

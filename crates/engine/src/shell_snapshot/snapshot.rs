//! The captured state of one shell, and commands that restore it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    sync::Arc,
};

use outpost_process::{Command, FIRST_PASSED_FD};
use outpost_sandbox::PASSED_FD;
use rustix::fs::MemfdFlags;

use super::{
    Charge, SnapshotRequest,
    shell::ShellKind,
    state::{ShellState, StateReader},
};
use crate::Start;

/// The longest argument that the kernel accepts, `MAX_ARG_STRLEN` without its NUL.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// The captured state of a shell. Keeps its memory charged.
pub(crate) struct Snapshot {
    state: ShellState,
    _charge: Charge,
}

impl Snapshot {
    /// Parses the complete state of the shell that `capture` has started.
    pub(crate) fn new(
        request: &SnapshotRequest,
        read: &StateReader,
        capture: &Start,
        charge: Charge,
    ) -> Option<Self> {
        let state = ShellState::parse(request.kind, read.state(), &capture.env)?;
        Some(Snapshot {
            state,
            _charge: charge,
        })
    }

    /// Returns the command of a start with this state instead of a profile. Returns `None` if the
    /// command would be too long.
    ///
    /// # Errors
    /// If there is no memory or descriptor for the state.
    pub(crate) fn command(
        &self,
        request: &SnapshotRequest,
        start: &Start,
    ) -> io::Result<Option<Command>> {
        let mut command = start.command();
        let descriptor = match start.policy() {
            Some(_) => PASSED_FD,
            None => FIRST_PASSED_FD,
        };
        let [_, option, script, ..] = &mut command.argv[..] else {
            return Ok(None);
        };
        let set = String::from_utf8_lossy(&self.state.script);
        let plain = start.argv.get(2).map(String::as_str).unwrap_or_default();
        let restoring = request.kind.restoring_script(plain, descriptor, &set);
        if restoring.1.len() > MAX_ARGUMENT_BYTES {
            return Ok(None);
        }
        (*option, *script) = (restoring.0.into(), restoring.1.into());
        if request.kind != ShellKind::Sh {
            let file = memory_file(&[
                request.kind.closing_line(descriptor).as_bytes(),
                &self.state.script,
            ]);
            command.passed = vec![Arc::new(file?.into())];
        }
        let mut env: BTreeMap<_, _> = command.env.into_iter().collect();
        for (name, value) in &self.state.env {
            if !(request.set_names.contains(name) && env.contains_key(name)) {
                env.insert(name.clone(), value.clone());
            }
        }
        command.env = env.into_iter().collect();
        Ok(Some(command))
    }
}

/// Creates a file in memory, which ends with its last descriptor. Each command gets its own, because a
/// program can change the file.
fn memory_file(parts: &[&[u8]]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("shell-snapshot", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    for part in parts {
        file.write_all(part)?;
    }
    Ok(file)
}

//! Probes what this host supports, in a process of its own.

use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

use super::config::Grant;
use super::{PROBE_INSIDE, SELF_FD, borrowed, c_string, capabilities, environment, mount_setup};
use crate::linux::bubblewrap::{self, Mounter};
use crate::linux::mounts::{Mount, Mounts, PlannedMount};
use crate::linux::{landlock, seccomp, sys};
use crate::{Access, Level, Network};

/// A successful probe writes this to stdout, followed by the Landlock version.
pub(in crate::linux) const REPORTED: &str = "landlock ";

/// A probe that isn't allowed to mount writes this to stderr, followed by the error.
pub(in crate::linux) const FORBIDDEN: &str = "mounts are forbidden: ";

/// The configuration that is probed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::linux) enum Probe {
    Namespaces(Mounter),
    Landlock,
}

const PROBES: [(Probe, &str); 3] = [
    (Probe::Namespaces(Mounter::Helper), "helper"),
    (Probe::Namespaces(Mounter::Bubblewrap), "bubblewrap"),
    (Probe::Landlock, "landlock"),
];

impl Probe {
    /// Returns the command line argument for this probe.
    pub(in crate::linux) fn argument(self) -> &'static str {
        let mut known = PROBES.iter().filter(|(probe, _)| *probe == self);
        known.next().map_or("", |(_, argument)| argument)
    }

    fn from_argument(argument: &str) -> Option<Self> {
        let mut known = PROBES.iter().filter(|(_, known)| *known == argument);
        known.next().map(|(probe, _)| *probe)
    }
}

/// Executes bubblewrap with a small plan; bubblewrap then executes [`report`]. Returns on failure.
pub(super) fn run(kind: &str, bubblewrap: &str, helper_args: &[&str]) {
    let Some(Probe::Namespaces(mounter)) = Probe::from_argument(kind) else {
        return;
    };
    let helper = super::open_program(Path::new("/proc/self/exe"))
        .and_then(|helper| rustix::io::fcntl_dupfd_cloexec(helper, SELF_FD + 1));
    let placed = helper.and_then(|helper| super::place_at(helper, SELF_FD));
    let error = match placed {
        Ok(()) => execute_bubblewrap(mounter, bubblewrap, helper_args),
        Err(errno) => errno.into(),
    };
    let _ = writeln!(io::stderr(), "{error}");
}

fn execute_bubblewrap(mounter: Mounter, bubblewrap: &str, helper_args: &[&str]) -> io::Error {
    let helper = format!("/proc/self/fd/{SELF_FD}");
    let options = match mounter {
        Mounter::Helper => bubblewrap::for_helper(Network::Restricted),
        Mounter::Bubblewrap => bubblewrap::with_mounts(&mounts(), Network::Restricted),
    };
    let kind = Probe::Namespaces(mounter).argument();
    let command = ["--", &helper].into_iter();
    let command = command.chain(helper_args.iter().copied());
    let command = command.chain([PROBE_INSIDE, kind]).map(c_string);
    let argv: Vec<_> = std::iter::once(c_string("bwrap"))
        .chain(options.into_iter().map(c_string))
        .chain(command)
        .collect();
    let program = c_string(bubblewrap);
    sys::execute(&program, &borrowed(&argv), &borrowed(&environment()))
}

/// The whole host, read-only.
fn mounts() -> Mounts {
    Mounts {
        mounts: vec![PlannedMount {
            path: "/".into(),
            mount: Mount::Readable,
        }],
        links: Vec::new(),
    }
}

/// Confines itself inside the namespaces, and writes the Landlock version or the error.
pub(super) fn report(kind: &str) {
    if Probe::from_argument(kind) == Some(Probe::Namespaces(Mounter::Helper))
        && let Err(errno) = try_mounts()
    {
        let prefix = match errno {
            Errno::PERM | Errno::ACCESS | Errno::NOSYS => FORBIDDEN,
            _ => "mounts: ",
        };
        let _ = writeln!(io::stderr(), "{prefix}{errno}");
        return;
    }
    let version = sys::landlock_version().unwrap_or_default();
    let outcome = capabilities::drop_all()
        .map_err(io::Error::from)
        .and_then(|()| {
            let root = Grant {
                path: "/".into(),
                access: Access::Read,
                identity: None,
            };
            landlock::restrict(&[root], Level::Namespaces)
        })
        .and_then(|_| {
            let filter = seccomp::filter(Network::Restricted, Level::Namespaces);
            sys::set_filter(&filter)
        });
    let _ = match outcome {
        Ok(()) => writeln!(io::stdout(), "{REPORTED}{version}"),
        Err(error) => writeln!(io::stderr(), "seccomp or landlock: {error}"),
    };
}

fn try_mounts() -> Result<(), Errno> {
    let proc = mount_setup::apply(&mounts()).map_err(|error| error.errno)?;
    // Any user will do.
    capabilities::enter_user_namespace(&proc, 0, 0)
}

//! Trying out what this host lets us do, in a process of its own.

use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

use super::{PROBED, SELF, borrowed, c_string, environment, powers, scene};
use crate::linux::bubblewrap::{self, Mounter};
use crate::linux::layout::{Mount, Mounts};
use crate::linux::orders::Grant;
use crate::linux::{filter, landlock, sys};
use crate::{Access, Level, Network};

/// What a probe that has come through writes, before the version of Landlock.
pub(crate) const REPORTED: &str = "landlock ";

/// What one writes that isn't let mount, before the reason.
pub(crate) const FORBIDDEN: &str = "mounts are forbidden: ";

/// What is tried out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Namespaces with mounts, by whoever does them.
    By(Mounter),
    /// What there is without namespaces.
    Alone,
}

const PROBES: [(Probe, &str); 3] = [
    (Probe::By(Mounter::Stage), "stage"),
    (Probe::By(Mounter::Bubblewrap), "bubblewrap"),
    (Probe::Alone, "alone"),
];

impl Probe {
    /// As an argument.
    pub(crate) fn word(self) -> &'static str {
        let mut known = PROBES.iter().filter(|(probe, _)| *probe == self);
        known.next().map_or("", |(_, word)| word)
    }

    fn named(word: &str) -> Option<Self> {
        let mut known = PROBES.iter().filter(|(_, known)| *known == word);
        known.next().map(|(probe, _)| *probe)
    }
}

/// Becomes bubblewrap, with everything that a plan can ask of it in small. Returns if that fails.
pub(super) fn run(how: &str, bubblewrap: &str, name: &[&str]) {
    let Some(Probe::By(mounter)) = Probe::named(how) else {
        return;
    };
    let own = super::open(Path::new("/proc/self/exe"))
        .and_then(|own| rustix::io::fcntl_dupfd_cloexec(own, SELF + 1));
    let placed = own.and_then(|own| super::put(own, SELF));
    let error = match placed {
        Ok(()) => become_bubblewrap(mounter, bubblewrap, name),
        Err(errno) => errno.into(),
    };
    let _ = writeln!(io::stderr(), "{error}");
}

fn become_bubblewrap(mounter: Mounter, bubblewrap: &str, name: &[&str]) -> io::Error {
    let own = format!("/proc/self/fd/{SELF}");
    let around = match mounter {
        Mounter::Stage => bubblewrap::for_a_stage(Network::Restricted),
        Mounter::Bubblewrap => bubblewrap::with_mounts(&mounts(), Network::Restricted),
    };
    let how = Probe::By(mounter).word();
    let within = ["--", &own].into_iter().chain(name.iter().copied());
    let within = within.chain([PROBED, how]).map(c_string);
    let argv: Vec<_> = std::iter::once(c_string("bwrap"))
        .chain(around.into_iter().map(c_string))
        .chain(within)
        .collect();
    let program = c_string(bubblewrap);
    sys::execute(&program, &borrowed(&argv), &borrowed(&environment()))
}

/// Everything, to look at.
fn mounts() -> Mounts {
    Mounts {
        over: vec![("/".into(), Mount::Readable)],
        links: Vec::new(),
    }
}

/// What happens inside: the last walls are put up, and who waits hears how high they are.
pub(super) fn report(how: &str) {
    if Probe::named(how) == Some(Probe::By(Mounter::Stage))
        && let Err(errno) = set_scene()
    {
        let whose = match errno {
            Errno::PERM | Errno::ACCESS | Errno::NOSYS => FORBIDDEN,
            _ => "mounts: ",
        };
        let _ = writeln!(io::stderr(), "{whose}{errno}");
        return;
    }
    let version = sys::landlock_version().unwrap_or_default();
    let outcome = powers::give_up()
        .map_err(io::Error::from)
        .and_then(|()| {
            let root = Grant {
                path: "/".into(),
                access: Access::Read,
                identity: None,
            };
            landlock::confine(&[root], Level::Namespaces)
        })
        .and_then(|_| {
            let filter = filter::filter(Network::Restricted, Level::Namespaces);
            sys::set_filter(&filter)
        });
    let _ = match outcome {
        Ok(()) => writeln!(io::stdout(), "{REPORTED}{version}"),
        Err(error) => writeln!(io::stderr(), "seccomp or landlock: {error}"),
    };
}

fn set_scene() -> Result<(), Errno> {
    let proc = scene::set(&mounts()).map_err(|unset| unset.errno)?;
    // Who it is afterwards makes no difference.
    powers::leave(&proc, 0, 0)
}

//! The stage outside: becomes bubblewrap.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{ARGUMENTS, INNER, LINE, ORDERS, SELF, borrowed, c_string, environment, inherited};
use crate::linux::line;
use crate::linux::report::{Report, Step};
use crate::linux::sys::{self, Becomes};

/// Returns if it fails, which it has said on its line then.
pub(super) fn run(bubblewrap: &str, name: &[&str]) {
    let line = inherited(LINE);
    let (step, error) = match hear() {
        Ok(()) => (Step::Bubblewrap, become_bubblewrap(bubblewrap, name)),
        Err(error) => (Step::Orders, error),
    };
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    line::tell(line, Report::Failed(step, errno));
}

/// Takes what comes over the line and puts it where bubblewrap and the inner stage look for it.
fn hear() -> io::Result<()> {
    let files = line::take_files(inherited(LINE))?;
    let [arguments, orders] = <[_; 2]>::try_from(files).map_err(|_| Errno::PROTO)?;
    // Out of the way first, since one may be where the other belongs.
    let orders = rustix::io::fcntl_dupfd_cloexec(orders, SELF + 1)?;
    let own = rustix::io::fcntl_dupfd_cloexec(super::open_self()?, SELF + 1)?;
    super::put(arguments, ARGUMENTS)?;
    super::put(orders, ORDERS)?;
    super::put(own, SELF)?;
    Ok(())
}

fn become_bubblewrap(bubblewrap: &str, name: &[&str]) -> io::Error {
    if !rustix::termios::isatty(rustix::stdio::stdin()) {
        leave_the_servers_terminal();
    }
    // What is meant for the program goes to the whole group, and this is in it. It lives as long as
    // the program does, whatever the program makes of it.
    sys::all_signals(Becomes::Ignored);
    let program = c_string(bubblewrap);
    let own = format!("/proc/self/fd/{SELF}");
    let numbers = ARGUMENTS.to_string();
    let words = ["bwrap", "--args", &numbers, "--", &own];
    let words = words.into_iter().chain(name.iter().copied()).chain([INNER]);
    let argv: Vec<_> = words.map(c_string).collect();
    sys::execute(&program, &borrowed(&argv), &borrowed(&environment()))
}

/// A process on pipes may be in the session of a server that somebody has started by hand, and could
/// read and write where that one sits.
fn leave_the_servers_terminal() {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        sys::leave_terminal(terminal);
    }
}

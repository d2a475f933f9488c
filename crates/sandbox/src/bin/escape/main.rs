//! Escape attempts for the tests of this crate. Also serves as the sandbox helper. Exits with 0 if the attempt
//! succeeded; otherwise prints the error.

mod races;
mod sockets;
mod syscalls;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::ExitCode;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "confine") {
        return outpost_sandbox::run_helper(arguments.into_iter().skip(1), serve);
    }
    let arguments: Vec<_> = arguments.iter().filter_map(|one| one.to_str()).collect();
    match attempt(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the attempts that are received, each in one packet, and replies with their errors. A probe of the
/// host ends its helper by closing the channel.
fn serve(channel: OwnedFd) {
    let mut channel = File::from(channel);
    let mut packet = [0; 4096];
    while let Ok(length @ 1..) = channel.read(&mut packet) {
        let arguments = String::from_utf8_lossy(&packet[..length]);
        let arguments: Vec<_> = arguments.split('\0').collect();
        let outcome =
            attempt(&arguments).map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        if channel.write_all(outcome.as_bytes()).is_err() {
            return;
        }
    }
}

fn attempt(arguments: &[&str]) -> io::Result<()> {
    match arguments {
        ["write", path] => write(path),
        ["read", path] => File::open(path)?.read(&mut [0; 16]).map(drop),
        ["is-file", path] => match std::fs::metadata(path)?.is_file() {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidInput.into()),
        },
        ["list", path] => std::fs::read_dir(path).map(drop),
        ["create", path] => File::create_new(path).map(drop),
        ["make-directory", path] => std::fs::create_dir(path),
        ["remove", path] => std::fs::remove_file(path),
        ["chmod", path] => std::fs::set_permissions(path, Permissions::from_mode(0o640)),
        // The group that the file already has, which any owner may set.
        ["chown", path] => chown(path, None, Some(rustix::process::getgid().as_raw())),
        ["touch", path] => touch(path),
        ["label", path] => {
            let flags = XattrFlags::empty();
            Ok(rustix::fs::setxattr(*path, "user.outpost", b"x", flags)?)
        }
        // Opens a file for writing without changing it.
        ["open-to-write", path] => OpenOptions::new().write(true).open(path).map(drop),
        ["rename", from, to] => std::fs::rename(from, to),
        ["link-and-write", from, to] => std::fs::hard_link(from, to).and_then(|()| write(to)),
        ["symlink-and-write", from, to] => symlink(from, to).and_then(|()| write(to)),
        ["make-device", path] => {
            let (mode, null) = (Mode::from_raw_mode(0o600), rustix::fs::makedev(1, 3));
            let kind = FileType::CharacterDevice;
            Ok(rustix::fs::mknodat(CWD, *path, kind, mode, null)?)
        }
        ["unix-stream", path] => sockets::unix_stream(path),
        ["unix-abstract", name] => sockets::unix_abstract(name),
        ["unix-datagram", path] => sockets::unix_datagram(path),
        ["unix-pair", path] => sockets::unix_pair(path),
        ["unix-inside", path] => sockets::unix_inside(path),
        ["unix-inside-abstract", name] => sockets::unix_inside_abstract(name),
        ["unix-inside-packets", path] => sockets::unix_inside_packets(path),
        ["unix-inside-waiting", path] => sockets::unix_inside_waiting(path),
        ["unix-serve", path, fifo] => sockets::unix_serve(path, fifo),
        ["unix-renamed", own, other] => sockets::unix_renamed(own, other),
        ["unix-linked", own, other] => sockets::unix_linked(own, other),
        ["unix-race-address", own, other] => races::address(own, other),
        ["unix-race-descriptor", other] => races::descriptor(other),
        ["tcp-inside"] => sockets::tcp_inside(),
        ["pair", domain] => sockets::pair(domain),
        ["tcp", port] => sockets::tcp(port),
        ["udp", port] => sockets::udp(port),
        ["raw"] => sockets::raw(),
        _ => syscalls::attempt(arguments),
    }
}

fn write(path: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(b"changed")
}

/// Sets the times by path, without opening the file.
fn touch(path: &str) -> io::Result<()> {
    let time = Timespec {
        tv_sec: 1_700_000_000,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

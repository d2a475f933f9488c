//! Escape attempts for the tests of this crate. Also serves as the sandbox helper. Exits with 0 if the attempt
//! succeeded; otherwise prints the error.

mod file_modes;
mod files;
mod sockets;
mod syscalls;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "confine") {
        return outpost_sandbox::run_helper(arguments.into_iter().skip(1), drop);
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

fn attempt(arguments: &[&str]) -> io::Result<()> {
    match arguments {
        ["write", path] => files::write(path),
        ["read", path] => files::read(path),
        ["list", path] => std::fs::read_dir(path).map(drop),
        ["create", path] => files::create(path),
        ["make-directory", path] => std::fs::create_dir(path),
        ["remove", path] => std::fs::remove_file(path),
        ["chmod", path] => files::chmod(path),
        ["mode", call, mode, path] => file_modes::set(call, mode, path),
        ["chown", path] => files::chown(path),
        ["touch", path] => files::touch(path),
        ["label", path] => files::label(path),
        ["open-to-write", path] => files::open_to_write(path),
        ["rename", from, to] => std::fs::rename(from, to),
        ["link-and-write", from, to] => files::link_and_write(from, to),
        ["symlink-and-write", from, to] => files::symlink_and_write(from, to),
        ["make-device", path] => files::make_device(path),
        ["by-handle", path] => syscalls::by_handle(path),
        ["unix-stream", path] => sockets::unix_stream(path),
        ["unix-abstract", name] => sockets::unix_abstract(name),
        ["unix-datagram", path] => sockets::unix_datagram(path),
        ["unix-pair", path] => sockets::unix_pair(path),
        ["pair", domain] => sockets::pair(domain),
        ["tcp", port] => sockets::tcp(port),
        ["udp", port] => sockets::udp(port),
        ["raw"] => sockets::raw(),
        ["signal", pid] => syscalls::signal(pid),
        ["trace"] => syscalls::trace(),
        ["memory"] => syscalls::memory(),
        ["ring"] => syscalls::ring(),
        ["keys"] => syscalls::keys(),
        ["user-namespace"] => syscalls::user_namespace(),
        ["clone-namespace"] => syscalls::clone_namespace(),
        ["mount", path] => syscalls::mount(path),
        ["tree"] => syscalls::tree(),
        ["quota"] => syscalls::quota(),
        ["shared-memory", key] => syscalls::shared_memory(key),
        ["foreign"] => syscalls::foreign(),
        ["type"] => terminal::inject(),
        ["type-elsewhere"] => terminal::inject_with_high_bits(),
        _ => Err(io::Error::other("no such attempt")),
    }
}

//! A program that tries to get out, for the tests of this crate; it is also its own stage. Each
//! attempt ends with 0 if it has worked, and otherwise says what it was told instead.

mod calls;
mod files;
mod modes;
mod sockets;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "confine") {
        return outpost_sandbox::stage(arguments.into_iter().skip(1), drop);
    }
    let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match attempt(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(words: &[&str]) -> io::Result<()> {
    match words {
        ["write", path] => files::write(path),
        ["read", path] => files::read(path),
        ["list", path] => std::fs::read_dir(path).map(drop),
        ["create", path] => files::create(path),
        ["make-directory", path] => std::fs::create_dir(path),
        ["remove", path] => std::fs::remove_file(path),
        ["chmod", path] => files::chmod(path),
        ["mode", way, mode, path] => modes::give(way, mode, path),
        ["chown", path] => files::chown(path),
        ["touch", path] => files::touch(path),
        ["label", path] => files::label(path),
        ["open-to-write", path] => files::open_to_write(path),
        ["rename", from, to] => std::fs::rename(from, to),
        ["link-and-write", from, to] => files::link_and_write(from, to),
        ["symlink-and-write", from, to] => files::symlink_and_write(from, to),
        ["make-device", path] => files::make_device(path),
        ["by-handle", path] => calls::by_handle(path),
        ["unix-stream", path] => sockets::unix_stream(path),
        ["unix-abstract", name] => sockets::unix_abstract(name),
        ["unix-datagram", path] => sockets::unix_datagram(path),
        ["unix-pair", path] => sockets::unix_pair(path),
        ["pair", domain] => sockets::pair(domain),
        ["tcp", port] => sockets::tcp(port),
        ["udp", port] => sockets::udp(port),
        ["raw"] => sockets::raw(),
        ["signal", pid] => calls::signal(pid),
        ["trace"] => calls::trace(),
        ["memory"] => calls::memory(),
        ["ring"] => calls::ring(),
        ["keys"] => calls::keys(),
        ["user-namespace"] => calls::user_namespace(),
        ["clone-namespace"] => calls::clone_namespace(),
        ["mount", path] => calls::mount(path),
        ["tree"] => calls::tree(),
        ["quota"] => calls::quota(),
        ["shared-memory", key] => calls::shared_memory(key),
        ["foreign"] => calls::foreign(),
        ["type"] => terminal::type_for_others(),
        ["type-elsewhere"] => terminal::type_with_high_bits(),
        _ => Err(io::Error::other("no such attempt")),
    }
}

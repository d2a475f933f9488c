//! The programs of the bare side. Each is a process of its own, so that the bare side pays for the
//! same context switches as a server.
//!
//! - the flood writer fills its stdout with a [`Pattern`]
//! - the relay is the minimal server: a process between a socket and a command

use std::env;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;
use rustix::io::Errno;

use super::client::ENVIRONMENT;
use super::pattern::Pattern;

/// The hidden subcommand.
const NAME: &str = "bench-program";

/// The size of every flooded pipe. It is the same on all sides, because a larger pipe makes any
/// reader faster.
const PIPE: usize = 256 * 1024;

/// The most bytes that the relay moves at once.
const MOVE: usize = 64 * 1024;

#[derive(clap::Args)]
pub(crate) struct BenchProgram {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Write this many bytes to stdout
    WriteFlood { pattern: Pattern, bytes: usize },
    /// Connect each socket to stdin and stdout of a command
    Relay {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<String>,
    },
}

impl BenchProgram {
    pub(crate) fn run(self) -> Result<()> {
        match self.part {
            Part::WriteFlood { pattern, bytes } => write_flood(pattern, bytes),
            Part::Relay { argv } => run_relay(argv),
        }
    }
}

/// Builds the command line of a bare program.
fn command_line(words: &[&str]) -> Result<Vec<String>> {
    let us = env::current_exe().context("finding this program")?;
    let us = us.to_str().context("this program's path isn't UTF-8")?;
    let line = [us, NAME].into_iter().chain(words.iter().copied());
    Ok(line.map(str::to_owned).collect())
}

/// Builds the command line that writes `bytes` bytes.
pub(super) fn flood_command(pattern: Pattern, bytes: usize) -> Result<Vec<String>> {
    let name = pattern.to_possible_value().unwrap_or_default();
    command_line(&["write-flood", name.get_name(), &bytes.to_string()])
}

fn write_flood(pattern: Pattern, bytes: usize) -> Result<()> {
    // Bypass Rust's stdout, which is line-buffered.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Fails on a PTY, which has no such size.
    let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE);
    let block = pattern.block();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len());
        match out.write_all(&block[..now]) {
            Ok(()) => left -= now,
            Err(error) if reader_has_gone(&error) => break,
            Err(error) => return Err(error).context("writing the flood"),
        }
    }
    Ok(())
}

/// Returns true if the reader has closed its end.
fn reader_has_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(error) == Some(Errno::IO)
}

/// A running relay. Dropping it ends it.
pub(super) struct Relay {
    /// Exits at the end of its stdin, so that it cannot outlive us.
    process: Child,
    port: u16,
}

impl Relay {
    /// Starts a relay that runs a command per connection.
    pub(super) fn start(argv: &[&str]) -> Result<Self> {
        let line = command_line(&[&["relay", "--"], argv].concat())?;
        let mut process = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a relay")?;
        let mut said = String::new();
        let stdout = process.stdout.take().context("the relay has no stdout")?;
        BufReader::new(stdout).read_line(&mut said)?;
        let port = said.trim().parse().context("the relay printed no port")?;
        Ok(Self { process, port })
    }

    pub(super) fn connect(&self) -> Result<TcpStream> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let socket = socket.context("connecting to the relay")?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prints the relay's port, then serves connections until its stdin ends.
fn run_relay(argv: Vec<String>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(move || {
        for socket in listener.incoming() {
            if let Err(error) = socket.map_err(Into::into).and_then(|s| serve(&s, &argv)) {
                eprintln!("relay: {error:#}");
            }
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn serve(socket: &TcpStream, argv: &[String]) -> Result<()> {
    socket.set_nodelay(true)?;
    let (variable, value) = ENVIRONMENT;
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .env(variable, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", argv[0]))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    thread::scope(|scope| {
        // Either direction may end first, so errors are expected.
        scope.spawn(|| stdin.map(|mut stdin| pass_on(&mut { socket }, &mut stdin)));
        let _ = stdout.map(|mut stdout| pass_on(&mut stdout, &mut { socket }));
        let _ = socket.shutdown(Shutdown::Write);
    });
    let status = child.wait()?;
    ensure!(status.success(), "{} ended with {status}", argv[0]);
    Ok(())
}

/// Copies through user space; [`io::copy`] would use splice.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; MOVE];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => to.write_all(&buffer[..read])?,
        }
    }
}

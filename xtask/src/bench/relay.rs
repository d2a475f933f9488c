//! The minimal server: a process between a socket and a command.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};

use super::bare_programs;
use super::client::ENVIRONMENT;

/// The most bytes moved at once.
const MOVE: usize = 64 * 1024;

/// A running relay. Dropping it ends it.
pub(super) struct Relay {
    /// Exits at the end of its stdin, so that it cannot outlive us.
    process: Child,
    port: u16,
}

impl Relay {
    /// Starts a relay that runs a command per connection.
    pub(super) fn start(argv: &[&str]) -> Result<Self> {
        let line = bare_programs::command(&[&["relay", "--"], argv].concat())?;
        let mut process = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a relay")?;
        let mut said = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        let port = said.trim().parse().context("the relay printed no port");
        Ok(Self {
            port: port?,
            process,
        })
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

/// Runs the relay: prints its port, then serves connections until its stdin ends.
pub(super) fn run(argv: Vec<String>) -> Result<()> {
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
        scope.spawn(|| {
            // Either direction may end first, so errors are expected.
            let _ = stdin.map(|mut stdin| pass_on(&mut { socket }, &mut stdin));
        });
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

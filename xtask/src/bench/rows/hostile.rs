//! Memory of a server with hostile clients, and how another client fares.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::commands::run_served;
use super::idle::memory;
use crate::bench::client::{Client, ConnectedServer, ENVIRONMENT};
use crate::bench::measurement::{Bound, MIB, Measurement, Unit};
use crate::bench::rounds::{compare, median, millis};
use crate::bench::run::Bench;
use crate::bench::server::Candidate;

const CONNECTIONS: usize = 100;

/// Each round has a server of its own, because a peak is not reset.
const ROUNDS: usize = 1;

/// The announced size of a message that is never finished, and how much of it is sent.
const MESSAGE_BYTES: u64 = 64 << 20;
const SENT_BYTES: usize = 60 << 20;

/// Measures the peak of memory, and commands of another client meanwhile.
pub(super) fn hostile(bench: &Bench) -> Result<Vec<Measurement>> {
    let duration = bench.amount(Duration::from_secs(10), Duration::from_secs(3));
    let medians = compare(bench, ROUNDS, None, Ok, |candidate| {
        attack(*candidate, duration)
    })?;
    let name = |what| format!("{CONNECTIONS} hostile connections: {what}");
    let memory = vec![Bound::AtMost(256.0 * MIB)];
    Ok(medians.lines([
        (name("memory"), Unit::Bytes, memory),
        (name("a command of another, p50"), Unit::Millis, Vec::new()),
    ]))
}

fn attack(candidate: Candidate<'_>, duration: Duration) -> Result<[f64; 2]> {
    let mut link = ConnectedServer::open(candidate)?;
    let url = link.server.url().to_owned();
    let attackers = (0..CONNECTIONS).map(|number| Attacker::start(&url, number));
    let attackers = attackers.collect::<Result<Vec<_>>>()?;
    let mut commands = Vec::new();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        commands.push(millis(run_served(&mut link.client, None)?));
    }
    let peak = memory(link.server.pid(), "VmHWM")?;
    drop(attackers);
    Ok([peak, median(&commands)])
}

/// A hostile connection, which reads nothing. Dropping it ends it.
struct Attacker {
    socket: TcpStream,
    /// Sends until the socket is closed.
    sender: Option<JoinHandle<()>>,
}

impl Attacker {
    /// Connects. The attacks take turns: a message that is never finished, answers that are not read,
    /// and output that is not read.
    fn start(url: &str, number: usize) -> Result<Self> {
        let socket = Client::connect(url, None)?.into_socket()?;
        let mut sending = socket.try_clone()?;
        let sender = thread::spawn(move || {
            // Fails once the server or this benchmark closes the socket.
            let _ = match number % 3 {
                0 => send_unfinished(&mut sending),
                1 => send_requests(&mut sending),
                _ => start_floods(&mut sending),
            };
        });
        Ok(Self {
            socket,
            sender: Some(sender),
        })
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
    }
}

/// The header of a text message with a mask of zeros.
fn header(length: u64) -> Vec<u8> {
    [&[0x81, 0xFF][..], &length.to_be_bytes(), &[0; 4]].concat()
}

fn message(text: &str) -> Vec<u8> {
    [header(text.len() as u64), text.into()].concat()
}

fn send_unfinished(socket: &mut TcpStream) -> std::io::Result<()> {
    socket.write_all(&header(MESSAGE_BYTES))?;
    let part = [b'x'; 64 * 1024];
    for _ in 0..SENT_BYTES / part.len() {
        socket.write_all(&part)?;
    }
    Ok(())
}

/// Requests whose answers repeat the name of an unknown method.
fn send_requests(socket: &mut TcpStream) -> std::io::Result<()> {
    let method = "x".repeat(250);
    let request = json!({"id": &method, "method": &method});
    let requests = message(&request.to_string()).repeat(100);
    loop {
        socket.write_all(&requests)?;
    }
}

fn start_floods(socket: &mut TcpStream) -> std::io::Result<()> {
    let (variable, value) = ENVIRONMENT;
    for id in ["one", "two"] {
        let start = json!({
            "processId": id,
            "argv": ["cat", "/dev/zero"],
            "cwd": "file:///",
            "env": {variable: value},
        });
        let request = json!({"id": id, "method": "process/start", "params": start});
        socket.write_all(&message(&request.to_string()))?;
    }
    Ok(())
}

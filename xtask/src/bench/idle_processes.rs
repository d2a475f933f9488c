//! Processes that wrote one line and are idle.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::client::{Client, Start};
use super::connected_server::ConnectedServer;
use super::message::Message;
use super::proc_files::resident;

/// Exits by itself if the server leaves it behind.
const STANDS_BY: &[&str] = &["/bin/sh", "-c", "echo here; exec sleep 300"];

/// Starts in flight.
const AT_ONCE: usize = 32;

/// The delay before memory is measured.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) struct IdleProcesses {
    names: Vec<String>,
    /// The server's memory per process, in bytes.
    pub(super) memory_each: f64,
}

impl IdleProcesses {
    /// Starts `count` processes, after one that pays for one-time allocations.
    pub(super) fn start(connected: &mut ConnectedServer, count: usize) -> Result<Self> {
        let ConnectedServer { client, server } = connected;
        let pid = server.pid();
        let mut names = start(client, 1)?;
        let before = memory_when_idle(pid)?;
        names.extend(start(client, count)?);
        let memory_each = (memory_when_idle(pid)? - before) / count as f64;
        Ok(Self { names, memory_each })
    }

    /// Starts `count` processes on a connection each and returns the connections.
    /// [`Self::terminate`] covers the first process only; the others end with the server.
    pub(super) fn start_on_connections(
        connected: &mut ConnectedServer,
        count: usize,
    ) -> Result<(Self, Vec<Client>)> {
        let ConnectedServer { client, server } = connected;
        let pid = server.pid();
        let names = start(client, 1)?;
        let mut others = vec![joined(server.url())?];
        let before = memory_when_idle(pid)?;
        for _ in 0..count {
            others.push(joined(server.url())?);
        }
        let memory_each = (memory_when_idle(pid)? - before) / count as f64;
        Ok((Self { names, memory_each }, others))
    }

    /// Terminates the processes. May fail; the server ends them anyway.
    pub(super) fn terminate(&self, client: &mut Client) -> Result<()> {
        for names in self.names.chunks(AT_ONCE) {
            let mut last = 0;
            for name in names {
                let params = format!(r#"{{"processId":"{name}"}}"#);
                last = client.request("process/terminate", &params);
            }
            client.wait_response(last)?;
        }
        Ok(())
    }
}

/// Opens a connection with one idle process.
fn joined(url: &str) -> Result<Client> {
    let mut client = Client::connect(url)?;
    start(&mut client, 1)?;
    Ok(client)
}

/// Measures the server's memory after a delay.
pub(super) fn memory_when_idle(pid: u32) -> Result<f64> {
    thread::sleep(SETTLE);
    resident(pid)
}

fn start(client: &mut Client, count: usize) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(count);
    let mut heard = 0;
    while heard < count {
        while names.len() < count.min(heard + AT_ONCE) {
            let (_, name) = client.start(Start {
                argv: STANDS_BY,
                ..Start::default()
            })?;
            names.push(name);
        }
        match client.next()? {
            Message::Output { .. } => heard += 1,
            Message::Exited { code, .. } => ensure!(false, "an idle process exited with {code}"),
            _ => {}
        }
    }
    Ok(names)
}

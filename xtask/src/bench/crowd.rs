//! Processes that have written once and then stand by.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::client::{Client, Start};
use super::link::Link;
use super::message::Message;
use super::proc_files::resident;

/// Ends by itself, should a server leave it behind.
const STANDS_BY: &[&str] = &["/bin/sh", "-c", "echo here; exec sleep 300"];

/// How many are started at once.
const AT_ONCE: usize = 32;

/// How long a server gets to put things away before its memory is looked at.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) struct Crowd {
    names: Vec<String>,
    /// What each of them costs the server, in bytes.
    pub(super) memory_each: f64,
}

impl Crowd {
    /// Starts so many, and one before them that pays for what is needed only once.
    pub(super) fn gather(link: &mut Link, count: usize) -> Result<Self> {
        let Link { client, server } = link;
        let pid = server.pid();
        let mut names = start(client, 1)?;
        let before = settled(pid)?;
        names.extend(start(client, count)?);
        let memory_each = (settled(pid)? - before) / count as f64;
        Ok(Self { names, memory_each })
    }

    /// The same with a connection for each, which are given back. They are whole crowds of one, so
    /// what is dismissed later is the first alone; the others end with their server.
    pub(super) fn gather_apart(link: &mut Link, count: usize) -> Result<(Self, Vec<Client>)> {
        let Link { client, server } = link;
        let pid = server.pid();
        let names = start(client, 1)?;
        let mut others = vec![joined(server.url())?];
        let before = settled(pid)?;
        for _ in 0..count {
            others.push(joined(server.url())?);
        }
        let memory_each = (settled(pid)? - before) / count as f64;
        Ok((Self { names, memory_each }, others))
    }

    /// Ends them all. A server of which they are left ends them too, so this may fail.
    pub(super) fn dismiss(&self, client: &mut Client) -> Result<()> {
        for names in self.names.chunks(AT_ONCE) {
            let mut last = 0;
            for name in names {
                let params = format!(r#"{{"processId":"{name}"}}"#);
                last = client.request("process/terminate", &params);
            }
            client.answered(last)?;
        }
        Ok(())
    }
}

/// One more connection, with a process that stands by.
fn joined(url: &str) -> Result<Client> {
    let mut client = Client::connect(url)?;
    start(&mut client, 1)?;
    Ok(client)
}

/// The memory a server holds once it is quiet.
pub(super) fn settled(pid: u32) -> Result<f64> {
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
            Message::Exited { code, .. } => ensure!(false, "a bystander ended with {code}"),
            _ => {}
        }
    }
    Ok(names)
}

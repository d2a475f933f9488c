//! `outpost mcp proxy`: a server that is in truth running elsewhere.

use std::{cell::Cell, io, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use outpost_client::{
    EnvPolicy, Event, Place, Process, Remote, RemoteOptions, SignalName, Start, StreamName,
};
use outpost_engine::sandbox::Level;
use outpost_mcp::{Command, Limits, Passage, Sieve, parting};
use tokio::{
    io::{AsyncWriteExt as _, Stdout, stderr, stdout},
    time::{sleep, timeout},
};

use super::asides::Asides;
use crate::{
    args::McpProxy,
    console::{Signals, Typed},
    exit,
    farewell::{Remains, take_leave},
    handed_on::{handed_on, handed_on_beside_ours},
    target,
};

/// How long a server has to end by itself, once its input has ended or it was
/// asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long its end may take to be known here after that, and what is said last
/// to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How it ended.
enum Ending {
    Exited(i32),
    /// We ended it, because nobody asks it any more.
    Done,
    Lost(String),
    Stopped(SignalName),
    Unheard(io::Error),
}

pub(super) async fn proxy(args: &McpProxy) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let start = start(args)?;
    let (place, remote) = match signals.unless_ended(place(args)).await {
        Ok(found) => found?,
        Err(signal) => return Ok(exit::of_signal(signal)),
    };
    let started = match signals.unless_ended(parting::start(&*place, start)).await {
        Ok(Ok(process)) => Ok(process),
        Ok(Err(error)) => {
            let program = args.command[0].to_string_lossy();
            Err(exit::not_started(&program, &error))
        }
        Err(signal) => Err(exit::of_signal(signal)),
    };
    let process = match started {
        Ok(process) => process,
        Err(code) => {
            // Whether the server has started it may be unknown: then it is ended there.
            let leaving = leave(&*place, remote.as_deref(), Remains::Unknown);
            let _ = signals.unless_ended(leaving).await;
            return Ok(code);
        }
    };
    let mut asides = Asides::to(stderr());
    let ending = relay(&process, &mut signals, &mut asides).await;
    drop(process);
    // What isn't ended by then ends with its session, or with us.
    let leaving = leave(&*place, remote.as_deref(), Remains::Leftovers);
    let _ = signals.unless_ended(leaving).await;
    let (code, words) = concluded(ending);
    asides.finish(words.as_deref(), LAST_WORDS).await;
    Ok(code)
}

/// The exit code, and what is to be said with it.
fn concluded(ending: Ending) -> (ExitCode, Option<String>) {
    match ending {
        Ending::Exited(code) => (exit::of_process(code), None),
        Ending::Done => (ExitCode::SUCCESS, None),
        Ending::Lost(message) => (exit::beyond_reach(), Some(message)),
        Ending::Stopped(signal) => (exit::of_signal(signal), None),
        Ending::Unheard(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            (ExitCode::SUCCESS, None)
        }
        Ending::Unheard(error) => {
            let words = format!("cannot write to stdout: {error}");
            (ExitCode::FAILURE, Some(words))
        }
    }
}

/// Leaves the place, and the session if it is on a server.
async fn leave(place: &dyn Place, remote: Option<&Remote>, remains: Remains) {
    match remote {
        Some(remote) => take_leave(remote, remains).await,
        // What doesn't end in time is killed.
        None => drop(place.close().await),
    }
}

/// Here, or on the server that was named.
async fn place(args: &McpProxy) -> anyhow::Result<(Arc<dyn Place>, Option<Arc<Remote>>)> {
    let Some(on) = &args.on.on else {
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        return Ok((Arc::new(target::here(cwd, Level::default())?), None));
    };
    let options = RemoteOptions {
        client_name: "outpost mcp proxy".to_owned(),
        ..RemoteOptions::default()
    };
    let remote = Arc::new(target::connect(on, options).await?);
    Ok((Arc::clone(&remote) as _, Some(remote)))
}

/// Elsewhere it gets what it is given; here it is as if the host had started it.
fn start(args: &McpProxy) -> anyhow::Result<Start> {
    let here = |name: &str| std::env::var_os(name);
    let env = match args.on.on {
        None => handed_on_beside_ours(&args.env, here)?,
        Some(_) => handed_on(&args.env, here)?,
    };
    let command = Command {
        program: args.command[0].clone(),
        args: args.command[1..].to_vec(),
        env: env
            .into_iter()
            .map(|(n, value)| (n, value.into()))
            .collect(),
        env_vars: Vec::new(),
        cwd: args.cwd.as_ref().map(PathBuf::from),
    };
    let start = command.start_there(here)?;
    if args.on.on.is_some() {
        return Ok(start);
    }
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    Ok(start.env_policy(all))
}

/// Passes everything on until one side is done, and ends what is left.
async fn relay(process: &Process, signals: &mut Signals, asides: &mut Asides) -> Ending {
    let mut typed = Typed::read(None);
    let input = async {
        // What it doesn't take it doesn't want; its end says why.
        let _ = typed.pass_on(process).await;
        sleep(GRACE).await;
    };
    let exited = Cell::new(None);
    let output = print(process, &exited, asides);
    tokio::pin!(output);
    let (ending, over) = tokio::select! {
        ending = &mut output => match ending {
            // What is lost can't be ended.
            lost @ Ending::Lost(_) => return lost,
            ending => (ending, true),
        },
        // Its own code counts, if it was there before we ended what it left.
        () = input => (exited.get().map_or(Ending::Done, Ending::Exited), false),
        signal = signals.ending() => (Ending::Stopped(signal), false),
    };
    let last_words = async {
        // What can't be reached can't be ended; the output says so.
        if parting::end(process).await.is_ok() {
            process.detach();
        }
        match over {
            true => None,
            false => Some(output.await),
        }
    };
    let last_words = timeout(GRACE + LAST_WORDS, last_words);
    tokio::select! {
        last = last_words => match last {
            Ok(None | Some(Ending::Exited(_))) | Err(_) => ending,
            Ok(Some(other)) => other,
        },
        // Who says it twice can't wait.
        _ = signals.ending() => ending,
    }
}

/// Prints its messages, and beside them what isn't one. Its exit code is known as
/// soon as it has one; what it has left may still speak for it.
async fn print(process: &Process, exited: &Cell<Option<i32>>, asides: &mut Asides) -> Ending {
    let mut printer = Printer {
        sieve: Sieve::new(Limits::default().message_bytes),
        stdout: stdout(),
        asides,
    };
    let mut events = process.events();
    let written = loop {
        let written = match events.next().await {
            Some(Event::Output { stream, bytes, .. }) => printer.output(stream, bytes).await,
            Some(Event::Exited { code, .. }) => {
                exited.set(Some(code));
                Ok(())
            }
            Some(Event::Failed { message }) => return Ending::Lost(message),
            Some(Event::Closed { .. }) | None => break printer.finish().await,
        };
        if let Err(error) = written {
            return Ending::Unheard(error);
        }
    };
    match written {
        Ok(()) => Ending::Exited(exited.get().unwrap_or(-1)),
        Err(error) => Ending::Unheard(error),
    }
}

struct Printer<'a> {
    sieve: Sieve,
    stdout: Stdout,
    asides: &'a mut Asides,
}

impl Printer<'_> {
    async fn output(&mut self, stream: StreamName, bytes: Bytes) -> io::Result<()> {
        if stream == StreamName::Stderr {
            self.asides.say(bytes);
            return Ok(());
        }
        self.sieve.push(bytes);
        self.passages().await
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.sieve.finish();
        self.passages().await
    }

    async fn passages(&mut self) -> io::Result<()> {
        while let Some(passage) = self.sieve.pop() {
            match passage {
                Passage::Message(line) => {
                    self.stdout.write_all(&line).await?;
                    self.stdout.write_all(b"\n").await?;
                }
                Passage::Aside(line) => self.asides.say([&line[..], b"\n"].concat().into()),
                Passage::Lost { bytes } => {
                    let words = format!("a line of {bytes} bytes was too long");
                    self.asides.note(&words);
                }
            }
        }
        self.stdout.flush().await
    }
}

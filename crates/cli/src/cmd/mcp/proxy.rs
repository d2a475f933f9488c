//! `outpost mcp proxy`: a server that is in truth running elsewhere.

use std::{ffi::OsString, io, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use outpost_client::{
    EnvPolicy, Event, Place, Process, RemoteOptions, SignalName, Start, StreamName,
};
use outpost_engine::sandbox::Level;
use outpost_mcp::{Command, EnvSource, EnvVar, Limits, Passage, Sieve};
use tokio::{
    io::{AsyncWriteExt as _, Stderr, Stdout, stderr, stdout},
    time::{sleep, timeout},
};

use crate::{
    args::McpProxy,
    console::{Signals, Typed},
    exit,
    render::out::note,
    target,
};

/// How long a server has to end by itself, once its input has ended or it was
/// asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long its end may take to be known here after that.
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
    let place = tokio::select! {
        place = place(args) => place?,
        signal = signals.ending() => return Ok(exit::of_signal(signal)),
    };
    let process = tokio::select! {
        started = place.start(start) => match started {
            Ok(process) => process,
            Err(error) => {
                let program = args.command[0].to_string_lossy();
                return Ok(exit::not_started(&program, &error));
            }
        },
        signal = signals.ending() => return Ok(exit::of_signal(signal)),
    };
    let code = concluded(relay(&process, &mut signals).await);
    drop(process);
    tokio::select! {
        // What isn't ended by then ends with its session, or with us.
        _ = place.close() => {}
        _ = signals.ending() => {}
    }
    Ok(code)
}

fn concluded(ending: Ending) -> ExitCode {
    match ending {
        Ending::Exited(code) => exit::of_process(code),
        Ending::Done => ExitCode::SUCCESS,
        Ending::Lost(message) => exit::out_of_reach(&message),
        Ending::Stopped(signal) => exit::of_signal(signal),
        Ending::Unheard(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ending::Unheard(error) => {
            note(&format!("cannot write to stdout: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Here, or on the server that was named.
async fn place(args: &McpProxy) -> anyhow::Result<Arc<dyn Place>> {
    let Some(on) = &args.on.on else {
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        return Ok(Arc::new(target::here(cwd, Level::default())?));
    };
    let options = RemoteOptions {
        client_name: "outpost mcp proxy".to_owned(),
        ..RemoteOptions::default()
    };
    Ok(Arc::new(target::connect(on, options).await?))
}

/// Elsewhere it gets what it is given; here it is as if the host had started it.
fn start(args: &McpProxy) -> anyhow::Result<Start> {
    let (given, named): (Vec<_>, Vec<_>) = args.env.iter().partition(|v| v.value.is_some());
    let command = Command {
        program: args.command[0].clone(),
        args: args.command[1..].to_vec(),
        env: given
            .into_iter()
            .filter_map(|v| Some((v.name.clone(), OsString::from(v.value.clone()?))))
            .collect(),
        env_vars: named
            .into_iter()
            .map(|v| EnvVar {
                name: v.name.clone(),
                source: EnvSource::Local,
            })
            .collect(),
        cwd: args.cwd.as_ref().map(PathBuf::from),
    };
    let start = command.start_there(|name| std::env::var_os(name))?;
    if args.on.on.is_some() {
        return Ok(start);
    }
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    Ok(start.env_policy(all).kill_grace(GRACE))
}

/// Passes everything on until one side is done.
async fn relay(process: &Process, signals: &mut Signals) -> Ending {
    let mut typed = Typed::read(None);
    let input = async {
        // What it doesn't take it doesn't want; its end says why.
        let _ = typed.pass_on(process).await;
        sleep(GRACE).await;
    };
    let output = print(process);
    tokio::pin!(output);
    let ending = tokio::select! {
        ending = &mut output => return ending,
        () = input => Ending::Done,
        signal = signals.ending() => Ending::Stopped(signal),
    };
    let last_words = async {
        // What can't be reached can't be ended; the output says so.
        if process.terminate().await.is_ok() {
            process.detach();
        }
        timeout(GRACE + LAST_WORDS, output).await
    };
    tokio::select! {
        last = last_words => match last {
            Ok(Ending::Exited(_)) | Err(_) => ending,
            Ok(other) => other,
        },
        // Who says it twice can't wait.
        _ = signals.ending() => ending,
    }
}

/// Prints its messages, and beside them what isn't one.
async fn print(process: &Process) -> Ending {
    let mut printer = Printer {
        sieve: Sieve::new(Limits::default().message_bytes),
        stdout: stdout(),
        stderr: stderr(),
    };
    let mut events = process.events();
    let mut exit = None;
    let written = loop {
        let written = match events.next().await {
            Some(Event::Output { stream, bytes, .. }) => printer.output(stream, bytes).await,
            Some(Event::Exited { code, .. }) => {
                exit = Some(code);
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
        Ok(()) => Ending::Exited(exit.unwrap_or(-1)),
        Err(error) => Ending::Unheard(error),
    }
}

struct Printer {
    sieve: Sieve,
    stdout: Stdout,
    stderr: Stderr,
}

impl Printer {
    async fn output(&mut self, stream: StreamName, bytes: Bytes) -> io::Result<()> {
        if stream == StreamName::Stderr {
            self.aside(&bytes).await;
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
                Passage::Aside(line) => {
                    self.aside(&line).await;
                    self.aside(b"\n").await;
                }
                Passage::Lost { bytes } => {
                    note(&format!("a line of {bytes} bytes was too long"));
                }
            }
        }
        self.stdout.flush().await
    }

    /// Who doesn't listen to this misses nothing of the protocol.
    async fn aside(&mut self, bytes: &[u8]) {
        let _ = self.stderr.write_all(bytes).await;
        let _ = self.stderr.flush().await;
    }
}

//! `outpost mcp proxy`: an MCP server on stdio that runs on an executor.

use std::{
    cell::Cell,
    ffi::OsString,
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use outpost_client::{EnvPolicy, Event, Process, Signal, Start, Stream};
use outpost_engine::sandbox::Level;
use outpost_mcp::{Command, FilteredLine, Limits, LineSplitter, shutdown};
use tokio::{
    io::{AsyncWriteExt as _, Stdout, stderr, stdout},
    time::{sleep, timeout},
};

use super::stderr::{StderrWriter, enlarge_pipe};
use crate::{
    args::{OnOrLaunch, Variable, env_args, text, variable},
    console::{Signals, StdinForwarder},
    endpoint::{Endpoint, cwd_on},
    exit,
    render::visible::visible_json,
    target::{self, Leftovers, Target},
};

/// Grace period of the server, after the end of its input or a signal.
const GRACE: Duration = Duration::from_secs(2);
/// Timeout for the exit event after that, and for writing the last stderr output.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Outcome of the proxy.
enum ProxyEnd {
    Exited(i32),
    /// The server was terminated after the end of stdin.
    Done,
    Lost(String),
    Killed(Signal),
    OutputError(io::Error),
}

/// Arguments of `outpost mcp proxy`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost mcp proxy -- npx -y @modelcontextprotocol/server-everything
  outpost mcp proxy --on ws://127.0.0.1:7777 -e API_KEY -- my-server --verbose
  outpost mcp proxy --on 'stdio:ssh build outpost serve --listen stdio://' -- my-server")]
pub(crate) struct Proxy {
    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// The working directory; by default this directory, or the server's
    #[arg(long, value_name = "DIR", value_parser = text())]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or with NAME alone copy its value; may be given more than once. With --on,
    /// only these and a few such as PATH and HOME are set
    #[arg(short, long, value_name = "NAME[=VALUE]", value_parser = variable())]
    pub(crate) env: Vec<Variable>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Runs the server, and forwards stdin, stdout and stderr.
pub(super) async fn proxy(args: &Proxy) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let endpoint = args.on.explicit_endpoint()?;
    let endpoint = endpoint.as_ref();
    let start = start(args, endpoint)?;
    let opening = Target::open(endpoint, "outpost mcp proxy", || {
        target::local(None, Level::default())
    });
    let target = match signals.unless_ended(opening).await {
        Ok(target) => target?,
        Err(signal) => return Ok(exit::of_signal(signal)),
    };
    let starting = shutdown::start_with_grace(&*target.executor, start);
    let program = args.command[0].to_string_lossy();
    let process = match target.started(starting, &program, &mut signals).await {
        Ok(process) => process,
        Err(not_started) => return Ok(not_started.code),
    };
    let mut stderr_writer = StderrWriter::to(stderr()).for_terminal(io::stderr().is_terminal());
    let end = relay(&process, &mut signals, &mut stderr_writer).await;
    drop(process);
    // Leftover processes end with the session, or with this program.
    let closing = target.close(Leftovers::Processes);
    let _ = signals.unless_ended(closing).await;
    let (code, message) = exit_status(end);
    enlarge_pipe();
    stderr_writer
        .finish(message.as_deref(), DRAIN_TIMEOUT)
        .await;
    Ok(code)
}

/// The exit code, with a final message.
fn exit_status(end: ProxyEnd) -> (ExitCode, Option<String>) {
    match end {
        ProxyEnd::Exited(code) => (exit::of_process(code), None),
        ProxyEnd::Done => (ExitCode::SUCCESS, None),
        ProxyEnd::Lost(message) => (ExitCode::from(exit::UNREACHABLE), Some(message)),
        ProxyEnd::Killed(signal) => (exit::of_signal(signal), None),
        ProxyEnd::OutputError(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            (ExitCode::SUCCESS, None)
        }
        ProxyEnd::OutputError(error) => {
            let message = format!("cannot write to stdout: {error}");
            (ExitCode::FAILURE, Some(message))
        }
    }
}

/// Builds the start of the MCP server. On a remote executor it gets only the given variables; on the
/// local executor it inherits the environment.
fn start(args: &Proxy, endpoint: Option<&Endpoint>) -> anyhow::Result<Start> {
    let env = env_args(&args.env, endpoint.is_none())?;
    let command = Command {
        program: args.command[0].clone(),
        args: args.command[1..].to_vec(),
        env: env
            .into_iter()
            .map(|(n, value)| (n, value.into()))
            .collect(),
        env_vars: Vec::new(),
        cwd: cwd_on(endpoint, args.cwd.as_deref()).map(PathBuf::from),
    };
    let start = command.start(|name| std::env::var_os(name))?;
    if endpoint.is_some() {
        return Ok(start);
    }
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    Ok(start.env_policy(all))
}

/// Forwards everything until one side ends, and terminates leftover processes.
async fn relay(
    process: &Process,
    signals: &mut Signals,
    stderr_writer: &mut StderrWriter,
) -> ProxyEnd {
    let mut stdin = StdinForwarder::read(None);
    let input = async {
        // An error of stdin is ignored: the exit of the process shows the cause.
        let _ = stdin.forward(process).await;
        sleep(GRACE).await;
    };
    let exited = Cell::new(None);
    let output = async {
        let printed = print(process, &exited, stderr_writer).await;
        printed.unwrap_or_else(ProxyEnd::OutputError)
    };
    tokio::pin!(output);
    let (end, over) = tokio::select! {
        end = &mut output => match end {
            // An unreachable process can't be terminated.
            lost @ ProxyEnd::Lost(_) => return lost,
            end => (end, true),
        },
        // The server's own exit code counts, if it exited before being terminated.
        () = input => (exited.get().map_or(ProxyEnd::Done, ProxyEnd::Exited), false),
        signal = signals.ending() => (ProxyEnd::Killed(signal), false),
    };
    let termination = async {
        // If the server is unreachable, the output reports it.
        if shutdown::terminate(process, None).await.is_ok() {
            process.detach();
        }
        if over { None } else { Some(output.await) }
    };
    let termination = timeout(GRACE + DRAIN_TIMEOUT, termination);
    tokio::select! {
        last = termination => match last {
            Ok(None | Some(ProxyEnd::Exited(_))) | Err(_) => end,
            Ok(Some(other)) => other,
        },
        // A second signal skips the wait.
        _ = signals.ending() => end,
    }
}

/// Writes messages to stdout and other lines to stderr. `exited` is set at the exit; leftover
/// processes may still write.
async fn print(
    process: &Process,
    exited: &Cell<Option<i32>>,
    stderr_writer: &mut StderrWriter,
) -> io::Result<ProxyEnd> {
    let mut lines = LineSplitter::new(Limits::default().message_bytes);
    let mut stdout = stdout();
    let mut events = process.events();
    loop {
        match events.next().await {
            Some(Event::Output {
                stream: Stream::Stderr,
                bytes,
                ..
            }) => stderr_writer.write(bytes),
            Some(Event::Output { bytes, .. }) => {
                lines.push(bytes);
                write_lines(&mut lines, &mut stdout, stderr_writer).await?;
            }
            Some(Event::Exited { code, .. }) => exited.set(Some(code)),
            Some(Event::Failed { error }) => return Ok(ProxyEnd::Lost(error.to_string())),
            Some(Event::Closed { .. }) | None => break,
        }
    }
    lines.finish();
    write_lines(&mut lines, &mut stdout, stderr_writer).await?;
    Ok(ProxyEnd::Exited(exited.get().unwrap_or(-1)))
}

async fn write_lines(
    lines: &mut LineSplitter,
    stdout: &mut Stdout,
    stderr_writer: &mut StderrWriter,
) -> io::Result<()> {
    // A host reads messages from a pipe; at a terminal, a person does.
    let is_terminal = io::stdout().is_terminal();
    while let Some(line) = lines.pop() {
        match FilteredLine::from(line) {
            FilteredLine::Message(line) => {
                if is_terminal {
                    let line = String::from_utf8_lossy(&line);
                    stdout.write_all(visible_json(&line).as_bytes()).await?;
                } else {
                    stdout.write_all(&line).await?;
                }
                stdout.write_all(b"\n").await?;
            }
            FilteredLine::Other(line) => stderr_writer.write([&line[..], b"\n"].concat().into()),
            FilteredLine::TooLong { bytes } => {
                stderr_writer.note(&format!("dropped a line of {bytes} bytes: too long"));
            }
        }
    }
    stdout.flush().await
}

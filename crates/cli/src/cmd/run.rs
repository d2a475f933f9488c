//! `outpost run`: runs a command locally, on a server, or detached.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    process::ExitCode,
    time::Duration,
};

use outpost_client::{EnvPolicy, Process, Start};
use tokio::time::{Instant, timeout};

use crate::{
    args::{
        LimitArgs, NetworkArgs, OnOrLaunch, Variable, env_args, local_variables, text, variable,
    },
    console::{
        Attachment, EscapeKey, Key, Notice, OnTermination, Outcome, RawMode, Signals,
        StdinForwarder, attach, window_size,
    },
    detached,
    endpoint::{Endpoint, cwd_on},
    exit,
    render::{command_line, errors, out},
    restrictions::Restrictions,
    target::{self, Leftovers, Target, end_tree},
    units::parse_time,
    working_directory::directory,
};

/// Timeout for disconnecting after a second signal.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// Variables that describe the terminal.
const TERMINAL: [&str; 2] = ["TERM", "COLORTERM"];
/// Variables that describe the language.
const LANGUAGE: [&str; 2] = ["LANG", "LANGUAGE"];
const LOCALE: &str = "LC_";

/// Arguments of `outpost run`.
#[derive(clap::Args, Debug, Default)]
#[command(after_help = "Examples:
  outpost run -- cargo test                       locally, in a supervised process tree
  outpost run --timeout 30s -- ./flaky.sh         exit code 124 on timeout
  outpost run --memory 2GiB --pids 200 -- make    limits for it and its descendants
  outpost run --allow-host '*.example.com' -- ./fetch.sh   no other network
  outpost run -t -- htop                          with a terminal
  tar c . | outpost run --on ws://10.0.0.7:7777 -- tar x -C /srv
  outpost run --on build -- make                  a host of `outpost hosts`
  outpost run --on ssh://me@build -- make
  outpost run --detach -- make -j8                prints an id for logs, attach and kill

The exit code is the command's own; 128+N if signal N ended it, 124 on
timeout, 127 if it was not found, 126 if it can't be executed, 255 if the connection
failed for good.")]
pub(crate) struct Run {
    /// Give the command a terminal of the size of this one
    #[arg(short, long)]
    pub(crate) tty: bool,

    /// Forward stdin from the terminal. A file or a pipe is always forwarded
    #[arg(short, long)]
    pub(crate) interactive: bool,

    /// Run it in the background, and print its id. Without --on, on your own server, which is
    /// started if necessary
    #[arg(short, long, conflicts_with_all = ["interactive"])]
    pub(crate) detach: bool,

    /// The working directory; by default this directory, or the server's
    #[arg(long, value_name = "DIR", value_parser = text())]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or with NAME alone copy its value; may be given more than once
    #[arg(short, long, value_name = "NAME[=VALUE]", value_parser = variable())]
    pub(crate) env: Vec<Variable>,

    /// End it with its whole process tree after this time
    #[arg(long, value_name = "TIME", value_parser = nonzero_time)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Rejects a timeout of zero.
fn nonzero_time(text: &str) -> Result<Duration, &'static str> {
    match parse_time(text)? {
        Duration::ZERO => Err("expected a time greater than 0"),
        time => Ok(time),
    }
}

/// Runs the command. The exit code is its own.
pub(crate) fn run(args: &Run) -> ExitCode {
    let requested = args.on.endpoint().and_then(|server| {
        let network = match server.is_none() && !args.detach {
            true => args.network.local_policy()?,
            false => args.network.policy(None),
        };
        Ok((server, network))
    });
    match requested {
        Ok((server, network)) => {
            let restrictions = Restrictions {
                network,
                ..Restrictions::default()
            };
            execute(args, server.as_ref(), restrictions)
        }
        Err(error) => exit::report(Err(error), exit::of_remote_error),
    }
}

/// Runs the command locally with restrictions.
pub(crate) fn restricted(args: &Run, restrictions: Restrictions) -> ExitCode {
    execute(args, None, restrictions)
}

fn execute(args: &Run, server: Option<&Endpoint>, restrictions: Restrictions) -> ExitCode {
    let mut interrupted = false;
    let command = async {
        if args.detach {
            return detach(args, server, &restrictions).await;
        }
        let (code, by_interrupt) = run_attached(args, server, &restrictions).await?;
        interrupted = by_interrupt;
        Ok(code)
    };
    let code = exit::run(command, exit::of_remote_error);
    // A shell stops a loop only if its child died of SIGINT, not if it exited.
    if interrupted && outpost_engine::restore_sigint().is_ok() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
    code
}

/// Starts the command as detached work, and prints its id.
async fn detach(
    args: &Run,
    server: Option<&Endpoint>,
    restrictions: &Restrictions,
) -> anyhow::Result<ExitCode> {
    if server.is_some_and(Endpoint::is_launched) {
        return Ok(exit::misuse(
            "cannot use --on stdio: with --detach: a stdio server exits with its command",
        ));
    }
    let start = restrictions.apply(with_terminal(args, program(args, server)?));
    let label = command_line::quoted(&args.command);
    let id = match detached::start(server, start, &label, &args.limits).await? {
        Ok(id) => id,
        Err(error) => return Ok(exit::not_started(&args.command[0], &error)),
    };
    if has_input() {
        out::note("stdin is not forwarded to detached work");
    }
    // An error even for a broken pipe: the process runs, and the caller needs its id.
    out::lines([&id]).map_err(|error| anyhow::anyhow!("cannot print the id {id}: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether stdin has data, which the user may expect to be forwarded.
fn has_input() -> bool {
    rustix::io::ioctl_fionread(stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Runs the command with this program's stdio. Returns the exit code, and whether a forwarded SIGINT
/// ended the command.
async fn run_attached(
    args: &Run,
    server: Option<&Endpoint>,
    restrictions: &Restrictions,
) -> anyhow::Result<(ExitCode, bool)> {
    // Before the start: later signals are for the command.
    let mut signals = Signals::listen()?;
    // Before connecting: an invalid argument needs no server.
    let start = program(args, server)?;
    let opening = Target::open(server, "outpost run", || {
        let cwd = Some(directory(args.cwd.as_deref())?);
        match args.limits.limits().needs_cgroup() {
            true => target::local_with_cgroups(cwd, restrictions.level),
            false => target::local(cwd, restrictions.level),
        }
    });
    let target = match signals.unless_ended(opening).await {
        Ok(target) => target?,
        Err(signal) => return Ok((exit::of_signal(signal), false)),
    };
    let start = match with_terminal(args, start) {
        start if !args.tty && StdinForwarder::is_wanted(args.interactive) => start.stdin(),
        start => start,
    };
    if let Some(refusal) = args.limits.refusal(&*target.executor).await {
        out::note(&refusal);
        target.close(Leftovers::None).await?;
        return Ok((ExitCode::FAILURE, false));
    }
    let starting = target.executor.start(restrictions.apply(start));
    let started = target.started(starting, &args.command[0], &mut signals);
    let process = match started.await {
        Ok(process) => process,
        Err(not_started) => {
            if let Err(error) = not_started.closed {
                out::note(&errors::client_message(&error));
            }
            return Ok((not_started.code, false));
        }
    };
    let (code, interrupted, urgency) =
        match attach_stdio(args, server, &process, &target, &mut signals).await {
            Ok(outcome) => {
                let of_interrupt = i32::from(exit::INTERRUPTED);
                let died = matches!(outcome, Outcome::Exited(code) if code == of_interrupt);
                let urgency = match outcome {
                    Outcome::Killed(_) => ExitUrgency::Immediate,
                    Outcome::Abandoned(_) => ExitUrgency::Abandon,
                    _ => ExitUrgency::Normal,
                };
                let has_exited = matches!(
                    outcome,
                    Outcome::Exited(_) | Outcome::ExitedWithLeftovers(_)
                );
                let code = exit::after(&process, outcome).await;
                if has_exited
                    && let Ok(exit) = process.wait().await
                    && let Some(exceeded) = args.limits.exceeded(&exit)
                {
                    out::note(&exceeded);
                }
                (code, died && signals.interrupted(), urgency)
            }
            Err(error) => {
                let _ = process.terminate().await;
                let code = exit::report(Err(error), exit::of_remote_error);
                (code, false, ExitUrgency::Normal)
            }
        };
    if let Some(remote) = &target.remote
        && urgency == ExitUrgency::Normal
    {
        end_tree(&process, remote, LEAVE_TIMEOUT).await;
    }
    drop(process);
    // Leftover processes end here. A second signal skips the wait: local processes are killed with this
    // program, remote processes end with the session's lease.
    let leaving = async {
        let closed = match urgency {
            ExitUrgency::Abandon => target.executor.close().await,
            _ => target.close(Leftovers::Processes).await,
        };
        if let Err(error) = closed {
            out::note(&errors::client_message(&error));
        }
    };
    if urgency == ExitUrgency::Immediate {
        let _ = timeout(LEAVE_TIMEOUT, leaving).await;
    } else {
        let _ = signals.unless_ended(leaving).await;
    }
    Ok((code, interrupted))
}

/// Urgency of the exit after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitUrgency {
    Normal,
    /// After a second signal.
    Immediate,
    /// The server is unreachable, and the user gave up.
    Abandon,
}

/// The command with its environment and working directory.
pub(crate) fn program(args: &Run, server: Option<&Endpoint>) -> anyhow::Result<Start> {
    let start = Start::new(args.command.iter().cloned());
    match server {
        // The server's environment, plus the variables of the terminal and the language.
        Some(server) => {
            let here = local_variables().filter(|(name, _)| {
                let name = name.as_str();
                let language = LANGUAGE.contains(&name) || name.starts_with(LOCALE);
                language || (args.tty && TERMINAL.contains(&name))
            });
            let start = start
                .inherit_env()
                .envs(here)
                .envs(env_args(&args.env, false)?);
            Ok(match cwd_on(Some(server), args.cwd.as_deref()) {
                Some(cwd) => start.cwd(cwd),
                None => start,
            })
        }
        // The user's server has its own environment and working directory.
        None if args.detach => {
            let variables = env_args(&args.env, false)?;
            let start = start.envs(local_variables()).envs(variables);
            Ok(start.cwd(directory(args.cwd.as_deref())?))
        }
        // The local executor already has the working directory. The whole environment is inherited,
        // including names that look like secrets.
        None => {
            let all = EnvPolicy {
                ignore_default_excludes: true,
                ..EnvPolicy::default()
            };
            Ok(start.env_policy(all).envs(env_args(&args.env, true)?))
        }
    }
}

/// Adds a terminal, a timeout and limits.
fn with_terminal(args: &Run, start: Start) -> Start {
    let start = start.limits(args.limits.limits());
    let start = match (args.tty, window_size()) {
        (true, Some((rows, cols))) => start.size(rows, cols),
        (true, None) => start.tty(),
        (false, _) => start,
    };
    match args.timeout {
        Some(timeout) => start.timeout(timeout),
        None => start,
    }
}

/// Connects our stdio with the command's.
async fn attach_stdio(
    args: &Run,
    server: Option<&Endpoint>,
    process: &Process,
    target: &Target,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let remote = target.remote.as_ref();
    // In raw mode the output must be shown on this terminal.
    let raw_mode = if args.tty && stdout().is_terminal() {
        RawMode::set()?
    } else {
        None
    };
    // In raw mode Ctrl-C goes to the command, which doesn't get it while the connection is lost.
    let escape_key = match (&raw_mode, remote) {
        (Some(_), Some(remote)) => Some(EscapeKey::GiveUp(Key::DETACH, remote.connection_state())),
        _ => None,
    };
    let hint = escape_key.as_ref().map(|_| "Ctrl-] gives up");
    let wanted = StdinForwarder::is_wanted(args.interactive || args.tty);
    let until = (args.timeout).and_then(|time| Instant::now().checked_add(time));
    let attachment = Attachment {
        process,
        remote,
        tty: args.tty,
        stdin: wanted.then(|| StdinForwarder::read(escape_key)),
        since: 0,
        held_while_stopped: server.is_some_and(|server| !server.is_launched()),
        on_termination: OnTermination::Terminate,
        until,
        notice: Notice::next_to(raw_mode.as_ref(), hint),
    };
    Ok(attach(attachment, signals).await)
}

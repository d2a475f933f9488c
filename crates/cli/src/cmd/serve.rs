//! `outpost serve`: listens until it is told to end.

use std::{convert::Infallible, io::Write, process::ExitCode, time::Duration};

use anyhow::Context;
use outpost_engine::{Engine, Spawner, SpawnerOptions};
use outpost_server::{ConfigReadResult, Host, Listen, Listener, Parting, Server};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{
    args::Serve,
    cmd::{confine, keeper},
    config::{self, InForce},
    logging, open_files,
};

/// How long the runtime may take to let go of a blocked read of stdin.
const LET_GO: Duration = Duration::from_millis(50);

/// What ends together is given back together.
const EBB: Duration = Duration::from_secs(1);

/// Runs the server; problems before it serves are one line and exit code 1.
pub(crate) fn run(args: Serve) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "outpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(args: Serve) -> anyhow::Result<ExitCode> {
    if args.background {
        rustix::process::setsid().context("cannot leave the terminal")?;
    }
    let layers = config::load(args.flags, args.config)?;
    let mut in_force = layers.in_force()?;
    // Nobody comes back to a session of a user's server whose work is forgotten.
    in_force.limits.end_forgotten_sessions = args.background;
    logging::start(&in_force.log_level, in_force.log_format, args.background)?;
    let runtime = runtime().context("cannot start the runtime")?;
    let code = runtime.block_on(serve(
        in_force,
        config::reading::reading(&layers),
        args.background,
    ));
    runtime.shutdown_timeout(LET_GO);
    code
}

/// A runtime that always has a thread for what blocks. If it had to ask for one when
/// there is none to be had, whoever asks would panic; so it waits for this one.
fn runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder
        .enable_all()
        .thread_keep_alive(Duration::MAX)
        .build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

async fn serve(
    config: InForce,
    reading: ConfigReadResult,
    background: bool,
) -> anyhow::Result<ExitCode> {
    // Before anything is said: who hears of us may signal us.
    let stdio = config.listen.contains(&Listen::Stdio);
    let mut ends = Ends::new(stdio).context("cannot listen for signals")?;
    outpost_engine::heed_children().context("cannot undo that SIGCHLD is ignored")?;
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        keeper: Some(keeper::command()),
        child_open_files: open_files::raise(),
        ..SpawnerOptions::default()
    })
    .context("cannot prepare to start processes")?;
    let mut listeners = Vec::new();
    for listen in &config.listen {
        listeners.extend(Listener::bind(listen)?);
    }
    let host = Host {
        configuration: reading,
        ..Host::look(spawner.tree_kind())
    };
    let sandbox = confine::sandbox(config.sandbox_level);
    let engine = Engine::with_sandbox(spawner, Some(sandbox), config.limits);
    // Clients are told, so it has to be tried out before there is one.
    let found = engine.confining_means().await;
    if let Err(reason) = &found {
        tracing::info!(%reason, "processes can't be confined here");
    }
    let host = host.with_sandbox(config.sandbox_level, found);
    tracing::info!(trees = %engine.tree_kind(), version = env!("CARGO_PKG_VERSION"), "serving");
    let server = Server::new(engine.clone(), host, config.settings);
    let urls: Vec<_> = listeners.iter().map(Listener::url).collect();
    for listener in listeners {
        tokio::spawn(listener.serve(server.clone()));
    }
    announce(&urls, stdio).context("cannot say where we listen")?;
    if background {
        let_go_of_stdout().context("cannot let go of stdout")?;
    }
    tokio::select! {
        () = lines(&server), if stdio => tracing::info!("end of input"),
        () = idle(&server, config.exit_when_idle) => tracing::info!("ending: there was nothing to do"),
        name = ends.next() => tracing::info!(signal = name, "ending"),
        never = give_memory_back(&engine) => match never {},
    }
    tokio::select! {
        all_gone = server.shutdown() => {
            if !all_gone {
                tracing::warn!("not everything ended in time");
                server.kill_all();
            }
            Ok(ExitCode::SUCCESS)
        }
        name = ends.next() => {
            tracing::warn!(signal = name, "ending at once");
            server.kill_all();
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns what a flood has left in the allocator's store, a while after it.
async fn give_memory_back(engine: &Engine) -> Infallible {
    loop {
        engine.ebbed().await;
        tokio::time::sleep(EBB).await;
        // If it can't be done now, the next flood will bring it up again.
        let _ = tokio::task::spawn_blocking(outpost_engine::give_back_memory).await;
    }
}

/// Says where we listen: on stdout, or on stderr where stdout carries messages.
fn announce(urls: &[String], stdio: bool) -> std::io::Result<()> {
    let lines: String = urls.iter().map(|url| format!("{url}\n")).collect();
    if stdio {
        std::io::stderr().write_all(lines.as_bytes())
    } else {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(lines.as_bytes())?;
        stdout.flush()
    }
}

/// Whoever reads it sees its end: who waited for us to listen, or who spoke to us
/// on it.
fn let_go_of_stdout() -> std::io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// Waits until there has been nothing to do for long enough, if that matters.
async fn idle(server: &Server, span: Option<Duration>) {
    match span {
        Some(span) => server.idle_for(span).await,
        None => std::future::pending().await,
    }
}

/// Serves the one client on standard input and output until its input ends. The
/// other listeners don't end with a session that somebody else has taken, but
/// they still end with the input.
async fn lines(server: &Server) {
    let (read, write) = (tokio::io::stdin(), tokio::io::stdout());
    let parting = server.serve_lines(Box::new(read), Box::new(write)).await;
    if parting == Parting::Over {
        return;
    }
    tracing::info!("the session on stdio was taken over");
    // There is no other way to tell its client that nobody answers any more.
    if let Err(error) = let_go_of_stdout() {
        tracing::warn!(%error, "cannot let go of stdout");
    }
    let rest = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
    if let Err(error) = rest {
        tracing::debug!(%error, "stdin can't be read");
    }
}

/// The signals that end us.
struct Ends {
    terminate: Signal,
    /// None where interrupts are for somebody else.
    interrupt: Option<Signal>,
    hangup: Signal,
}

impl Ends {
    /// Who speaks to us through our input may share its terminal with us, where Ctrl-C
    /// is for the command that runs here; then we were started ignoring it. Anybody
    /// else who starts us like that still wants to be able to end us.
    fn new(stdio: bool) -> std::io::Result<Self> {
        let deaf = stdio && outpost_engine::ignores_interrupts();
        Ok(Ends {
            terminate: signal(SignalKind::terminate())?,
            interrupt: match deaf {
                true => None,
                false => Some(signal(SignalKind::interrupt())?),
            },
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            () = heard(self.interrupt.as_mut()) => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// Waits for a signal, for ever if it isn't listened to.
async fn heard(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

//! `outpost serve`: runs the server until a signal, the end of stdin, or idleness.

use std::{
    convert::Infallible,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use outpost_engine::{
    Engine, LimitSupport, Limits, Spawner, SpawnerOptions,
    sandbox::{Access, HelperCommand, Sandbox},
};
use outpost_server::{ConfigReadResult, ConnectionEnd, Host, Listen, Listener, Server, Settings};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{
    audit_log, certificate,
    cmd::hidden,
    config::{self, Config, SettingFlags},
    exit::RUNTIME_SHUTDOWN,
    logging::{self, Log, LogFormat},
    render::out::{note, note_line},
    target::raise_open_files,
};

/// Time after which an idle thread for blocking work ends.
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Delay before freed memory is returned, so that processes that end together are handled together.
const TRIM_DELAY: Duration = Duration::from_secs(1);

/// Arguments of `outpost serve`: a flag for each setting that has one, and two more.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost serve                                   a free port on loopback
  outpost serve --listen ws://127.0.0.1:7777
  outpost serve --listen unix:///run/user/1000/outpost.sock
  outpost serve --listen stdio://                 one client, on stdin and stdout
  outpost serve --listen wss://0.0.0.0:7443 --tls-self-signed --tokens-file /etc/outpost/tokens.toml

Every flag can also be set by a variable (OUTPOST_RETAIN_BYTES=4MiB) or in
outpost.toml (retain_bytes = \"4MiB\"); `outpost config show` prints the settings.")]
pub(crate) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,

    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Detaches from the terminal, and closes stdout after printing the URLs. For the user's server.
    #[arg(long, hide = true)]
    background: bool,
}

/// Runs the server. A startup error is reported on one line, with exit code 1.
pub(crate) fn run(args: Serve) -> ExitCode {
    try_run(args).unwrap_or_else(|error| {
        note(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}

fn try_run(args: Serve) -> anyhow::Result<ExitCode> {
    // Before any secret is read: otherwise other processes of the user could read the memory and the
    // environment of the server, with the session ids of all clients.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("cannot protect the memory")?;
    outpost_engine::configure_heap();
    let background = args.background;
    if background {
        rustix::process::setsid().context("cannot detach from the terminal")?;
    }
    let layers = config::load(args.settings.0, args.config.clone())?;
    let config_file = args.config.as_deref();
    let config = layers.config()?;
    let log = logging::start(&config.log.level, config.log.format, background)?;
    let read_result = config::read_result(&layers);
    let code = runtime(THREAD_KEEP_ALIVE)
        .context("cannot start the runtime")
        .and_then(|runtime| {
            let code = runtime.block_on(serve(config, read_result, config_file, background, &log));
            runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
            code
        });
    // Through the log, because stderr may be blocked.
    Ok(code.unwrap_or_else(|error| {
        log.lines(&format!("{}\n", note_line(&format!("{error:#}"))));
        ExitCode::FAILURE
    }))
}

/// Builds a runtime that has a thread for blocking work from the start. tokio panics if it has none
/// and can't spawn one; with one, tasks queue for it. [`keep_blocking_thread`] keeps the last one.
fn runtime(keep_alive: Duration) -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder
        .enable_all()
        .thread_keep_alive(keep_alive)
        // File operations that hang, and everything else.
        .max_blocking_threads(1024)
        .build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

async fn serve(
    config: Config,
    read_result: ConfigReadResult,
    config_file: Option<&Path>,
    background: bool,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let log_format = config.log.format;
    // Before the URLs are printed: a client that reads them may send a signal.
    let stdio = config.listen.contains(&Listen::Stdio);
    let mut signals = EndSignals::new(stdio).context("cannot listen for signals")?;
    outpost_engine::restore_sigchld().context("cannot restore the default action of SIGCHLD")?;
    let child_open_files = raise_open_files();
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        subreaper: Some(hidden::subreaper_command()),
        child_open_files,
        moves_own_cgroup: true,
        adopts_orphans: true,
        ..SpawnerOptions::default()
    })
    .context("cannot set up process spawning")?;
    let settings = Settings {
        audit: audit_log::open(&config)?.map(Arc::new),
        tls: certificate::load(&config)?.map(Arc::new),
        ..config.server_settings()?
    };
    let mut listeners = Vec::new();
    for listen in &config.listen {
        listeners.extend(Listener::bind(listen, &settings)?);
    }
    if config.allow_local_users && !settings.auth.settings().needs_token() {
        tracing::warn!(
            "every user of this machine may connect on loopback and run commands as this one"
        );
    }
    warn_about_principals(&config);
    let host = Host {
        configuration: read_result,
        ..Host::detect(spawner.tree_kind())
    };
    let limits = Limits {
        // A client can't resume a session of the user's server after its processes expired.
        end_forgotten_sessions: background,
        ..config.limits()
    };
    let mut helper = HelperCommand {
        open_files: child_open_files,
        ..hidden::confine_command(config_file)
    };
    helper.own_paths.extend(config.own_paths());
    let hidden = config.own_paths().into_iter();
    let hidden = hidden.filter(|own| own.access == Access::Deny);
    outpost_files::protect(hidden.map(|own| own.path).chain(certificate::own_key()));
    helper.own_paths.extend(certificate::own_path());
    let sandbox = Sandbox::new(helper, config.sandbox.level);
    let engine = Engine::with_sandbox(spawner, Some(sandbox), limits);
    // First, because a probe of the sandbox that is about to end would count as another program.
    let limits = engine.limit_support().await;
    warn_about_limits(&config, &limits);
    let host = host.with_limits(limits);
    // Before the first client, because `initialize` reports the result.
    let found = engine.sandbox_support().await;
    if let Err(reason) = &found {
        tracing::info!(%reason, "sandboxing is not available on this host");
    }
    let host = host.with_sandbox(config.sandbox.level, found);
    tracing::info!(trees = %engine.tree_kind(), version = env!("CARGO_PKG_VERSION"), "serving");
    let server = Server::new(engine.clone(), host, settings);
    let urls: Vec<_> = listeners.iter().map(Listener::url).collect();
    for listener in listeners {
        tokio::spawn(listener.serve(server.clone()));
    }
    if config.tls_self_signed {
        let fingerprint = certificate::self_signed_fingerprint()?;
        log.lines(&match log_format {
            LogFormat::Json => format!("{{\"fingerprint\":\"{fingerprint}\"}}\n"),
            LogFormat::Text => format!("fingerprint {fingerprint}\n"),
        });
    }
    announce(&urls, stdio, log).context("cannot print the URLs")?;
    if background {
        close_stdout().context("cannot close stdout")?;
    }
    let idle_timeout = config.exit_when_idle.unwrap_or_default();
    tokio::select! {
        () = serve_stdio(&server), if stdio => tracing::info!("stdin closed; shutting down"),
        () = server.idle_for(idle_timeout), if config.exit_when_idle.is_some() => tracing::info!("idle timeout; shutting down"),
        name = signals.wait_for_end(&server) => tracing::info!(signal = name, "shutting down"),
        () = server.follow_credential_files() => {}
        never = return_freed_memory(&engine) => match never {},
        () = server.measure_stops() => {}
        never = keep_blocking_thread(THREAD_KEEP_ALIVE) => match never {},
    }
    let code = tokio::select! {
        all_gone = server.shutdown() => {
            if !all_gone {
                tracing::warn!("shutdown timed out; killing the remaining processes");
                server.kill_all();
            }
            ExitCode::SUCCESS
        }
        name = signals.next() => {
            tracing::warn!(signal = name, "second signal; killing all processes");
            server.kill_all();
            ExitCode::FAILURE
        }
    };
    server.finish_audit_log().await;
    Ok(code)
}

/// Logs principals whose settings protect less than they seem to.
fn warn_about_principals(config: &Config) {
    for (name, principal) in &config.principals {
        for root in principal.missing_roots() {
            tracing::warn!(principal = name, root = %root.display(), "root does not exist");
        }
        if principal.chooses_workspace(&config.profiles()) {
            tracing::warn!(
                principal = name,
                "principal may write any directory that it names as working directory; set roots"
            );
        }
        if principal.network.is_some() && principal.sandbox.is_none() {
            tracing::warn!(
                principal = name,
                "principal has a network policy but may write the files of the server's user; set sandbox"
            );
        }
    }
}

/// Logs principals that can start nothing, because their limits cannot be enforced on this host.
fn warn_about_limits(config: &Config, support: &LimitSupport) {
    for (name, principal) in &config.principals {
        for (limit, of_process) in principal.process_limits() {
            if let Some(reason) = support.unenforceable.get(of_process.as_str()) {
                tracing::warn!(
                    principal = name,
                    limit,
                    reason,
                    "principal can start nothing: its limit cannot be enforced"
                );
            }
        }
    }
}

/// Returns memory to the kernel after much output was freed.
async fn return_freed_memory(engine: &Engine) -> Infallible {
    loop {
        engine.wait_for_freed_memory().await;
        tokio::time::sleep(TRIM_DELAY).await;
        // A failure is retried when memory is freed next.
        let _ = tokio::task::spawn_blocking(outpost_engine::trim_heap).await;
    }
}

/// Keeps one idle thread for blocking work alive, by giving it some before it expires.
async fn keep_blocking_thread(keep_alive: Duration) -> Infallible {
    loop {
        tokio::time::sleep(keep_alive / 3).await;
        // In a task of its own, because it panics if all threads have expired while this program was
        // stopped, and none can be created now.
        let used = tokio::spawn(async { tokio::task::spawn_blocking(|| ()).await });
        let _ = used.await;
    }
}

/// Prints the URLs on stdout, or on stderr if stdout carries messages.
fn announce(urls: &[String], stdio: bool, log: &Log) -> std::io::Result<()> {
    let lines: String = urls.iter().map(|url| format!("{url}\n")).collect();
    if stdio {
        log.lines(&lines);
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(lines.as_bytes())?;
    stdout.flush()
}

/// Closes stdout, so that its reader sees the end of file.
fn close_stdout() -> std::io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// Serves the client on stdin and stdout until stdin ends. If another connection takes over
/// the session, only stdout is closed and the other listeners continue until stdin ends.
async fn serve_stdio(server: &Server) {
    let (read, write) = (tokio::io::stdin(), tokio::io::stdout());
    let on_termination = server.serve_lines(Box::new(read), Box::new(write)).await;
    if on_termination == ConnectionEnd::Closed {
        return;
    }
    tracing::info!("stdio session was taken over by another connection");
    // The end of file is the only way to tell the client that its session is gone.
    if let Err(error) = close_stdout() {
        tracing::warn!(%error, "cannot close stdout");
    }
    let rest = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
    if let Err(error) = rest {
        tracing::debug!(%error, "cannot read stdin");
    }
}

/// Signals that end the server.
struct EndSignals {
    terminate: Signal,
    /// None if SIGINT is meant for another process.
    interrupt: Option<Signal>,
    hangup: Signal,
}

impl EndSignals {
    /// A stdio client may share its terminal with this server, where Ctrl-C is meant for the
    /// command. Such a client starts the server with SIGINT ignored, and it stays ignored. A
    /// server without stdio handles SIGINT in any case.
    fn new(stdio: bool) -> std::io::Result<Self> {
        let keep_ignoring = stdio && outpost_engine::is_sigint_ignored();
        Ok(EndSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: if keep_ignoring {
                None
            } else {
                Some(signal(SignalKind::interrupt())?)
            },
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the signal that ends the server. SIGHUP makes a server with tokens, a certificate or an audit
    /// log open them again instead.
    async fn wait_for_end(&mut self, server: &Server) -> &'static str {
        loop {
            match self.next().await {
                "SIGHUP" if server.has_files_to_reload() => {
                    server.reload_files();
                }
                name => return name,
            }
        }
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            Some(_) = async { Some(self.interrupt.as_mut()?.recv().await) } => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of threads of this program.
    fn threads() -> usize {
        std::fs::read_dir("/proc/self/task").unwrap().count()
    }

    #[test]
    fn idle_blocking_threads_end_except_one() {
        let before = threads();
        let keep_alive = Duration::from_millis(300);
        let runtime = runtime(keep_alive).unwrap();
        let workers = runtime.metrics().num_workers();
        let most = 50;
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(most));
        let all: Vec<_> = (0..most)
            .map(|_| {
                let barrier = std::sync::Arc::clone(&barrier);
                runtime.spawn_blocking(move || {
                    barrier.wait();
                })
            })
            .collect();
        runtime.block_on(async {
            for task in all {
                task.await.unwrap();
            }
            assert!(threads() >= before + workers + most, "one thread each");
            let ended = async {
                // One more may have been created by the task that keeps one.
                while threads() > before + workers + 4 {
                    // sleep: the end of a thread is no event
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                // sleep: longer than any idle thread lives
                tokio::time::sleep(keep_alive * 3).await;
            };
            tokio::select! {
                ended = tokio::time::timeout(Duration::from_secs(20), ended) => ended.unwrap(),
                never = keep_blocking_thread(keep_alive) => match never {},
            }
            assert!(threads() > before + workers, "one is left");
        });
    }
}

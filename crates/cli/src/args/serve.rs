//! `outpost serve`.

use outpost_engine::{Limits, TreeChoice};
use outpost_server::{Listen, Settings};

use super::units::{Lease, Size, Span, at_least_one};

/// Where and how to serve.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost serve                                   a free port on loopback
  outpost serve --listen ws://127.0.0.1:7777
  outpost serve --listen unix:///run/user/1000/outpost.sock
  outpost serve --listen stdio://                 one client, on stdin and stdout")]
pub(crate) struct Serve {
    /// Where to listen: ws://IP:PORT (port 0 picks one), unix:///PATH or
    /// stdio://; may be given more than once
    #[arg(long, value_name = "URL", default_value = "ws://127.0.0.1:0")]
    pub(crate) listen: Vec<Listen>,

    /// How much of a process's newest output stays readable
    #[arg(long, value_name = "SIZE", default_value_t = Size(Limits::default().retain_bytes))]
    pub(crate) retain_bytes: Size,

    /// How far a process may write ahead of a client that reads slowly, before
    /// it is held back
    #[arg(long, value_name = "SIZE", default_value_t = Size(Limits::default().window_bytes))]
    pub(crate) window_bytes: Size,

    /// How long a process stays readable after it has closed
    #[arg(long, value_name = "TIME", default_value_t = Span(Limits::default().closed_retention))]
    pub(crate) closed_retention: Span,

    /// How long a session stays when its connection is lost; then its processes
    /// are ended
    #[arg(long, value_name = "TIME", default_value_t = Span(Settings::default().session_ttl))]
    pub(crate) session_ttl: Span,

    /// The longest such time that a client may ask for, or `unlimited`
    #[arg(long, value_name = "TIME", default_value_t = Lease(Settings::default().max_session_ttl))]
    pub(crate) max_session_ttl: Lease,

    /// How many sessions there may be; a client beyond that is told to retry
    /// later
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_sessions, value_parser = at_least_one)]
    pub(crate) max_sessions: usize,

    /// How many processes may run at once; a start beyond that is told to retry
    /// later
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_processes, value_parser = at_least_one)]
    pub(crate) max_processes: usize,

    /// How many connections may be open at once; further ones get HTTP 503
    #[arg(long, value_name = "N", default_value_t = Settings::default().max_connections, value_parser = at_least_one)]
    pub(crate) max_connections: usize,

    /// How many ordinary requests of one connection run at once; control is
    /// never counted
    #[arg(long, value_name = "N", default_value_t = Settings::default().concurrent_requests, value_parser = at_least_one)]
    pub(crate) concurrent_requests: usize,

    /// End when for this long there was no connection, and no process running or
    /// still readable
    #[arg(long, value_name = "TIME")]
    pub(crate) exit_when_idle: Option<Span>,

    /// Leave the terminal, and let go of stdout once it has said where we listen;
    /// for those who start a server behind the back of a person
    #[arg(long, hide = true)]
    pub(crate) background: bool,

    /// How whole process trees are ended; `auto` takes the best this host has
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(crate) trees: Trees,

    /// What to log: off, error, warn, info, debug, trace, or a filter such as
    /// outpost_server=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,

    /// How to log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// How whole process trees are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trees {
    /// A cgroup, else a keeper, else a group
    Auto,
    /// A cgroup for each process
    Cgroup,
    /// A small process above each one, which inherits its orphans
    Keeper,
    /// Process groups; a daemon may escape them
    Group,
}

impl From<Trees> for TreeChoice {
    fn from(trees: Trees) -> Self {
        match trees {
            Trees::Auto => TreeChoice::Auto,
            Trees::Cgroup => TreeChoice::Cgroup,
            Trees::Keeper => TreeChoice::Keeper,
            Trees::Group => TreeChoice::Group,
        }
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

impl Serve {
    /// The engine's limits, as asked for.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            retain_bytes: self.retain_bytes.0,
            window_bytes: self.window_bytes.0.max(1),
            closed_retention: self.closed_retention.0,
            max_processes: self.max_processes,
            max_sessions: self.max_sessions,
            ..Limits::default()
        }
    }

    /// The server's settings, as asked for.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            max_connections: self.max_connections,
            concurrent_requests: self.concurrent_requests,
            session_ttl: self.session_ttl.0,
            max_session_ttl: self.max_session_ttl.0,
            ..Settings::default()
        }
    }
}

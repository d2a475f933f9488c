//! How a remote place is set up.

use std::{fmt, sync::Arc, time::Duration};

use outpost_protocol::DetachedTtl;

/// How a remote place is set up.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Who we say we are.
    pub client_name: String,
    /// A name for the session, for people; it is given once.
    pub session_label: Option<String>,
    /// How long the session stays when nobody is connected.
    pub lease: Lease,
    /// The session to take up again, instead of a new one.
    pub resume: Option<String>,
    /// Resume although another connection has the session, which is closed then.
    pub takeover: bool,
    /// How output is delivered.
    pub delivery: DeliveryChoice,
    /// Whom to trust behind `wss://`; none for whom the system trusts.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Bounds and times.
    pub limits: RemoteLimits,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions {
            client_name: "outpost-client".to_owned(),
            session_label: None,
            lease: Lease::ServerDefault,
            resume: None,
            takeover: false,
            delivery: DeliveryChoice::Auto,
            tls: None,
            limits: RemoteLimits::default(),
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("client_name", &self.client_name)
            .field("session_label", &self.session_label)
            .field("lease", &self.lease)
            // Who knows the id may have the session.
            .field("resume", &self.resume.as_ref().map(|_| "…"))
            .field("takeover", &self.takeover)
            .field("delivery", &self.delivery)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How long a session stays when nobody is connected. Beyond the released
/// servers, which ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// As the server is configured; usually 30 s.
    #[default]
    ServerDefault,
    /// So long.
    For(Duration),
    /// Until it is closed, where the server allows that.
    UntilClosed,
}

impl From<Lease> for DetachedTtl {
    fn from(lease: Lease) -> Self {
        match lease {
            Lease::ServerDefault => DetachedTtl::Unspecified,
            Lease::For(time) => DetachedTtl::Millis(crate::start::millis(time)),
            Lease::UntilClosed => DetachedTtl::Unlimited,
        }
    }
}

/// How output is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryChoice {
    /// Acknowledged, if the server can do that: nothing is ever lost, and while
    /// nobody is connected a process waits once it is a window ahead.
    #[default]
    Auto,
    /// Pushed: while nobody is connected processes run on, and the oldest output
    /// goes. For work that is to go on alone.
    Push,
}

/// Every bound and every time of a remote place. The defaults are what ships.
#[derive(Clone, Debug)]
pub struct RemoteLimits {
    /// How long the first connection may take, session included.
    pub connect_within: Duration,
    /// How long a lost connection is tried to be brought back.
    pub recover_within: Duration,
    /// How long a single try may take until the session is resumed.
    pub attempt_within: Duration,
    /// How long a farewell may take.
    pub close_within: Duration,
    /// How long a launched server may take to end once its input has.
    pub launched_ends_within: Duration,
    /// A WebSocket from which nothing comes for so long counts as lost.
    pub silence: Duration,
    /// How much output of a process stays here for late readers.
    pub retain_bytes: usize,
    /// How far a process may be ahead of its slowest reader, where output is
    /// acknowledged.
    pub window_bytes: usize,
    /// The same where output is pushed and the server waits for nobody: beyond
    /// it output has to be read again, if it is still there.
    pub push_window_bytes: usize,
    /// Output is acknowledged when there is so much of it,
    pub ack_bytes: usize,
    /// or when it is so old,
    pub ack_within: Duration,
    /// or, once the process is closed and nothing waits for it, so old.
    pub ack_close_within: Duration,
    /// How long a process of a resumed session is kept waiting for somebody who
    /// attaches to it; then its output is acknowledged as it comes.
    pub attach_within: Duration,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        RemoteLimits {
            connect_within: Duration::from_secs(10),
            recover_within: Duration::from_secs(25),
            attempt_within: Duration::from_secs(10),
            close_within: Duration::from_secs(1),
            launched_ends_within: Duration::from_secs(7),
            silence: Duration::from_secs(60),
            retain_bytes: 1024 * 1024,
            window_bytes: 1024 * 1024,
            push_window_bytes: 16 * 1024 * 1024,
            ack_bytes: 64 * 1024,
            ack_within: Duration::from_millis(50),
            ack_close_within: Duration::from_secs(1),
            attach_within: Duration::from_secs(5),
        }
    }
}

//! Options of a remote executor.

use std::{fmt, time::Duration};

use outpost_protocol::Override;

use super::{BearerToken, TlsConfig};

/// Options of a [`RemoteExecutor`](crate::RemoteExecutor).
///
/// ```
/// # use outpost_client::{Lease, RemoteOptions};
/// # use std::time::Duration;
/// let options = RemoteOptions::default()
///     .session_label("nightly build")
///     .lease(Lease::For(Duration::from_secs(600)));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The client's name, shown by the server.
    pub client_name: String,
    /// A name for a new session, for people.
    pub session_label: Option<String>,
    /// How long the session lasts without a connection.
    pub lease: Lease,
    /// The id of a session to resume. `None` opens a new one.
    pub resume: Option<String>,
    /// Whether to resume a session that another connection has. That connection is closed.
    pub takeover: bool,
    /// How output is delivered.
    pub delivery: DeliveryMode,
    /// The certificates to trust for `wss://`. `None` trusts the system's.
    pub tls: Option<TlsConfig>,
    /// Identifies the client to the server.
    pub token: Option<BearerToken>,
    /// Timeouts and buffer sizes.
    pub limits: RemoteLimits,
}

impl RemoteOptions {
    /// Sets the client's name.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Names a new session, for people.
    #[must_use]
    pub fn session_label(mut self, label: impl Into<String>) -> Self {
        self.session_label = Some(label.into());
        self
    }

    /// Sets how long the session lasts without a connection.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = lease;
        self
    }

    /// Resumes a session instead of opening a new one.
    #[must_use]
    pub fn resume(mut self, session_id: impl Into<String>) -> Self {
        self.resume = Some(session_id.into());
        self
    }

    /// Resumes the session even if another connection has it.
    #[must_use]
    pub fn takeover(mut self, takeover: bool) -> Self {
        self.takeover = takeover;
        self
    }

    /// Sets how output is delivered.
    #[must_use]
    pub fn delivery(mut self, delivery: DeliveryMode) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets the certificates to trust for `wss://`.
    #[must_use]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the token that identifies the client. [`connect`](crate::RemoteExecutor::connect) fails
    /// rather than send it over an unencrypted connection to another host.
    #[must_use]
    pub fn token(mut self, token: BearerToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets timeouts and buffer sizes.
    #[must_use]
    pub fn limits(mut self, limits: RemoteLimits) -> Self {
        self.limits = limits;
        self
    }
}

impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions {
            client_name: "outpost-client".to_owned(),
            session_label: None,
            lease: Lease::ServerDefault,
            resume: None,
            takeover: false,
            delivery: DeliveryMode::AckedIfSupported,
            tls: None,
            token: None,
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
            // The id is a secret: it grants access to the session.
            .field("resume", &self.resume.as_ref().map(|_| "…"))
            .field("takeover", &self.takeover)
            .field("delivery", &self.delivery)
            .field("token", &self.token)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How long a session lasts without a connection. Older servers ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// As the server is configured; usually 30 s.
    #[default]
    ServerDefault,
    /// This long.
    For(Duration),
    /// Until it is closed, if the server allows that.
    UntilClosed,
}

impl From<Lease> for Override<u64> {
    fn from(lease: Lease) -> Self {
        match lease {
            Lease::ServerDefault => Override::Unspecified,
            Lease::For(time) => Override::Value(crate::start::millis(time)),
            Lease::UntilClosed => Override::Off,
        }
    }
}

/// How output is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryMode {
    /// Acknowledged, if the server supports it: no output is lost. While no client is connected,
    /// a process blocks once it is one window ahead.
    #[default]
    AckedIfSupported,
    /// Pushed: while no client is connected, processes continue and the oldest output is
    /// discarded. For unattended work.
    Push,
}

/// Timeouts and buffer sizes of a remote executor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteLimits {
    /// Timeout of the first connection, including the session.
    pub connect_timeout: Duration,
    /// Time after which a lost connection is given up.
    pub reconnect_timeout: Duration,
    /// Timeout of one attempt to connect and resume the session.
    pub attempt_timeout: Duration,
    /// Timeout of the WebSocket close handshake.
    pub close_timeout: Duration,
    /// Time after which a launched server is killed if it does not exit at the end of its input.
    pub child_exit_timeout: Duration,
    /// Time without any byte from the server after which a WebSocket counts as lost.
    pub silence_timeout: Duration,
    /// Time without any byte after which a WebSocket is
    /// [`Unresponsive`](crate::ConnectionState::Unresponsive), at most twice that. It is pinged in two thirds
    /// of this time.
    pub silence_notice: Duration,
    /// Bytes of output retained per process for late readers.
    pub retain_bytes: usize,
    /// Bytes that a process may be ahead of its slowest reader, with acknowledged delivery.
    pub window_bytes: usize,
    /// Bytes that are buffered for the slowest reader, with pushed delivery. Output beyond it is
    /// read again later, if the server still retains it.
    pub push_window_bytes: usize,
    /// Unacknowledged bytes after which an acknowledgement is sent at once.
    pub ack_bytes: usize,
    /// Time after which fewer bytes are acknowledged.
    pub ack_delay: Duration,
    /// Time after which the `closed` event of a process is acknowledged.
    pub close_ack_delay: Duration,
    /// Bytes of the event numbers that are sent with a resume. Servers accept 64 KiB before a session is
    /// open. The events of further processes may be sent twice by the server.
    pub resume_bytes: usize,
    /// Time that a process of a resumed session waits for a client to attach. Then its output is
    /// acknowledged as it arrives.
    pub attach_timeout: Duration,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        RemoteLimits {
            connect_timeout: Duration::from_secs(10),
            reconnect_timeout: Duration::from_secs(25),
            attempt_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(1),
            child_exit_timeout: Duration::from_secs(7),
            silence_timeout: Duration::from_secs(60),
            silence_notice: Duration::from_secs(15),
            retain_bytes: 1024 * 1024,
            window_bytes: 1024 * 1024,
            push_window_bytes: 16 * 1024 * 1024,
            ack_bytes: 64 * 1024,
            ack_delay: Duration::from_millis(50),
            close_ack_delay: Duration::from_secs(1),
            resume_bytes: 48 * 1024,
            attach_timeout: Duration::from_secs(5),
        }
    }
}

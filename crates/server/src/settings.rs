//! Limits and timeouts of the server.

use std::{sync::Arc, time::Duration};

use outpost_engine::{EnvPolicy, Ttl, netproxy::NetworkPolicies, sandbox::policy::Profiles};
use outpost_protocol::{MAX_HANDSHAKE_BYTES, MAX_MESSAGE_BYTES};
use outpost_rpc::outbox::WriterOptions;

use crate::{AuditLog, Authenticator, listen::Tls};

/// Size of a response without its output: names, numbers, the id.
const RESPONSE_OVERHEAD_BYTES: u64 = 64 * 1024;

/// Limits and timeouts of the server. Tests pass other values than the defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Open connections.
    pub max_connections: usize,
    /// Further open connections of the server's owner.
    pub owner_connections: usize,
    /// Time after which a connection that has not initialized may be closed in favour of another
    /// connection.
    pub initialize_grace: Duration,
    /// Time without messages after which a connection without processes may be closed in favour of
    /// another.
    pub idle_connection: Duration,
    /// Sockets whose HTTP request is not yet answered. Beyond this number the oldest socket is closed.
    pub max_http_sockets: usize,
    /// Process starts per connection that run at once.
    pub concurrent_requests: usize,
    /// Unanswered requests per connection.
    pub max_in_flight: usize,
    /// Bytes of unanswered requests per connection. A request beyond that blocks the
    /// connection.
    pub in_flight_bytes: usize,
    /// Time after which a blocked request is rejected if no large request completes.
    pub admission_timeout: Duration,
    /// Size of a received message.
    pub max_message_bytes: usize,
    /// Size of a message that is received before the handshake.
    pub max_handshake_bytes: usize,
    /// Time in which 64 KiB or the rest of a message must arrive once it has begun.
    pub message_timeout: Duration,
    /// Memory of the messages, answers and bodies of all connections. A request beyond that
    /// waits for `admission_timeout`, and is rejected then.
    pub message_memory_bytes: usize,
    /// Time without a received byte after which a WebSocket counts as lost.
    pub silence_timeout: Duration,
    /// Values of the `Origin` header that are accepted from browsers.
    pub allowed_origins: Vec<String>,
    /// Names in the `Host` header that are accepted on TCP besides loopback ones, without a port.
    pub allowed_hosts: Vec<String>,
    /// How clients authenticate.
    pub auth: Arc<Authenticator>,
    /// Records what clients do.
    pub audit: Option<Arc<AuditLog>>,
    /// The certificate of `wss://` listeners.
    pub tls: Option<Arc<Tls>>,
    /// A proxy on another host adds TLS to `ws://` listeners.
    pub plaintext_behind_proxy: bool,
    /// Interval of the check that the file of a unix socket still exists.
    pub socket_check_interval: Duration,
    /// Time to receive the head of an HTTP request.
    pub request_head_timeout: Duration,
    /// Write sizes, pings and close timeout of a connection.
    pub writer: WriterOptions,
    /// `TCP_NOTSENT_LOWAT` of accepted sockets. Bytes in the socket buffer delay every
    /// message queued after them.
    pub unsent_bytes: u32,
    /// Lease of a detached session, unless its client requests another one.
    pub session_ttl: Duration,
    /// Longest lease that a client may request.
    pub max_session_ttl: Ttl,
    /// Time in which the current connection of a session must show that it is alive when
    /// another one tries to resume the session.
    pub probe_timeout: Duration,
    /// Time to send the remaining responses after the input of a stdio connection ended.
    pub final_responses_timeout: Duration,
    /// Permission profiles of `command/exec`, and the default one.
    pub profiles: Profiles,
    /// Network policies by name.
    pub network_policies: NetworkPolicies,
    /// Environment policy of `command/exec`.
    pub command_env: EnvPolicy,
    /// Default timeout of processes that belong to a connection.
    pub command_timeout: Duration,
    /// Default cap per output stream of processes that belong to a connection.
    pub output_bytes_cap: u64,
    /// Output buffered for a final message, whatever the client requests: both streams
    /// together, in bytes of JSON text.
    pub buffered_output_bytes: u64,
    /// Time to wait for the end of output after the exit, while other processes hold the
    /// pipe open.
    pub drain_timeout: Duration,
    /// Limits of a file operation.
    pub files: outpost_files::Limits,
    /// Open file handles per connection.
    pub open_files: usize,
    /// Size from which a connection reads or writes only one whole file at a time.
    pub large_file_bytes: u64,
    /// Concurrent file operations per connection.
    pub file_operations: usize,
    /// Concurrent file operations of all connections; each blocks a thread.
    pub file_threads: usize,
    /// How long a file operation may take before its thread counts in `slow_file_threads` instead of
    /// `file_threads`.
    pub slow_file_operation: Duration,
    /// Concurrent file operations of all connections that take longer than `slow_file_operation`.
    pub slow_file_threads: usize,
    /// Limits of the watches of a connection.
    pub watch: outpost_files::WatchLimits,
    /// Watches of all connections.
    pub watches: usize,
    /// Connections that watch files; absent for seven eighths of what the kernel permits the user.
    pub watch_instances: Option<usize>,
    /// Watched files and directories of all connections; absent for seven eighths of what the kernel permits the
    /// user.
    pub watched_directories: Option<usize>,
    /// Directory listings in memory per connection.
    pub listings: usize,
    /// Concurrent HTTP requests per connection, including streamed bodies.
    pub http_requests: usize,
    /// Flow-control window of a streamed body.
    pub http_window_bytes: usize,
    /// Size of a body that is returned in one response.
    pub http_body_bytes: usize,
    /// Size up to which such a body is small. A connection gets one larger body at a time.
    pub http_small_body_bytes: usize,
    /// Time limit of a shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_connections: 4096,
            owner_connections: 8,
            initialize_grace: Duration::from_secs(5),
            idle_connection: Duration::from_secs(60),
            max_http_sockets: 1024,
            concurrent_requests: 128,
            max_in_flight: 1024,
            // The largest message, plus small requests that only wait.
            in_flight_bytes: MAX_MESSAGE_BYTES + 1024 * 1024,
            admission_timeout: Duration::from_secs(5),
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_handshake_bytes: MAX_HANDSHAKE_BYTES,
            message_timeout: Duration::from_secs(30),
            // The largest message and what is decoded from it, and a reserve for small ones.
            message_memory_bytes: 144 * 1024 * 1024,
            silence_timeout: Duration::from_secs(60),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            auth: Arc::default(),
            audit: None,
            tls: None,
            plaintext_behind_proxy: false,
            socket_check_interval: Duration::from_secs(2),
            request_head_timeout: Duration::from_secs(10),
            writer: WriterOptions::default(),
            unsent_bytes: 128 * 1024,
            session_ttl: Duration::from_secs(30),
            max_session_ttl: Ttl::For(Duration::from_secs(24 * 60 * 60)),
            probe_timeout: Duration::from_secs(3),
            final_responses_timeout: Duration::from_millis(500),
            profiles: Profiles::default(),
            network_policies: NetworkPolicies::default(),
            command_env: EnvPolicy::default(),
            command_timeout: Duration::from_secs(10),
            output_bytes_cap: 1024 * 1024,
            buffered_output_bytes: MAX_MESSAGE_BYTES as u64 - RESPONSE_OVERHEAD_BYTES,
            drain_timeout: Duration::from_secs(2),
            files: outpost_files::Limits::default(),
            open_files: 128,
            large_file_bytes: 16 * 1024 * 1024,
            file_operations: 32,
            file_threads: 256,
            slow_file_operation: Duration::from_secs(1),
            slow_file_threads: 512,
            watch: outpost_files::WatchLimits::default(),
            watches: 4096,
            watch_instances: None,
            watched_directories: None,
            listings: 4,
            http_requests: 128,
            http_window_bytes: 256 * 1024,
            http_body_bytes: 32 * 1024 * 1024,
            http_small_body_bytes: 256 * 1024,
            shutdown_timeout: Duration::from_millis(4500),
        }
    }
}

#[cfg(test)]
mod tests {
    use outpost_protocol::schema;

    use super::*;

    #[test]
    fn schema_states_the_default_timeout_and_cap() {
        let settings = Settings::default();
        let defaults = [
            format!("\"default\":{}", settings.command_timeout.as_millis()),
            format!("\"default\":{}", settings.output_bytes_cap),
        ];
        for document in ["process-spawn.json", "command-exec.json"] {
            let text = schema::documents()[document].to_string();
            for default in &defaults {
                assert!(text.contains(default), "{document}: {default}");
            }
        }
    }
}

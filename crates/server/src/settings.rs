//! Every bound and every time of the server's own.

use std::time::Duration;

use outpost_engine::{EnvPolicy, Ttl, sandbox::policy::Profiles};
use outpost_protocol::MAX_MESSAGE_BYTES;
use outpost_rpc::outbox::Delivery;

/// Room in an answer for all that isn't output: names, numbers, the id.
const AROUND_OUTPUT_BYTES: u64 = 64 * 1024;

/// What the server allows. The defaults are what ships; tests pass others.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many connections may be open.
    pub max_connections: usize,
    /// How many ordinary requests of a connection run at once.
    pub concurrent_requests: usize,
    /// How many requests of a connection may be unanswered.
    pub max_in_flight: usize,
    /// How many bytes the unanswered requests of a connection may have. What
    /// is beyond that waits, and so does what comes behind it.
    pub in_flight_bytes: usize,
    /// For how long, while none of them comes to its end; then it is refused.
    pub room_within: Duration,
    /// The largest message that is taken in.
    pub max_message_bytes: usize,
    /// A WebSocket from which nothing comes for so long counts as lost.
    pub silence: Duration,
    /// From which pages in a browser requests may come, each as `Origin` says it.
    pub allowed_origins: Vec<String>,
    /// How long an HTTP request may take to arrive.
    pub request_head_within: Duration,
    /// How the wire is shared among processes.
    pub delivery: Delivery,
    /// How much may wait unsent in a socket: what is in there can't be
    /// overtaken any more.
    pub unsent_bytes: u32,
    /// How long a session without a connection stays, unless its client asks
    /// for something else.
    pub session_ttl: Duration,
    /// The most that a client may ask for.
    pub max_session_ttl: Ttl,
    /// When another connection wants a session, how long the one that has it
    /// may take to show that it is alive.
    pub stir_within: Duration,
    /// How long the last answers may take when the input of a connection on
    /// stdio has ended.
    pub last_answers_within: Duration,
    /// What a `command/exec` may be confined to by name, and is if its client
    /// doesn't say.
    pub profiles: Profiles,
    /// What of the server's environment a `command/exec` gets.
    pub command_env: EnvPolicy,
    /// How long what belongs to a connection may run, unless its client asks
    /// for something else.
    pub command_timeout: Duration,
    /// How much of each of its streams a client gets, unless it asks for
    /// something else.
    pub output_bytes_cap: u64,
    /// How much output is kept for an answer at the end, whatever a client
    /// asks for: both streams together, as they are written in the answer.
    pub kept_output_bytes: u64,
    /// How long output is waited for after an exit, while somebody else holds
    /// it open.
    pub drain_within: Duration,
    /// What a file operation may take.
    pub files: outpost_files::Limits,
    /// How many files a connection may have open.
    pub open_files: usize,
    /// From how many bytes on only one file of a connection is read or written
    /// as a whole at a time.
    pub large_file_bytes: u64,
    /// How many file operations of a connection run at once,
    pub file_operations: usize,
    /// and how many of all connections: each has a thread while it runs.
    pub file_threads: usize,
    /// How many listings of a connection may be in memory.
    pub listings: usize,
    /// How many HTTP requests a connection may have under way, streamed bodies
    /// among them.
    pub http_requests: usize,
    /// How much of a streamed body is read ahead of the client.
    pub http_window_bytes: usize,
    /// How large a body may be that comes in one piece.
    pub http_body_bytes: usize,
    /// Up to here such a body is small: of larger ones a connection gets one
    /// at a time.
    pub http_small_body_bytes: usize,
    /// How long the end of the server may take, all in all.
    pub shutdown_within: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_connections: 4096,
            concurrent_requests: 128,
            max_in_flight: 1024,
            // The largest message there may be, beside requests that only wait.
            in_flight_bytes: MAX_MESSAGE_BYTES + 1024 * 1024,
            room_within: Duration::from_secs(5),
            max_message_bytes: MAX_MESSAGE_BYTES,
            silence: Duration::from_secs(60),
            allowed_origins: Vec::new(),
            request_head_within: Duration::from_secs(10),
            delivery: Delivery::default(),
            unsent_bytes: 128 * 1024,
            session_ttl: Duration::from_secs(30),
            max_session_ttl: Ttl::For(Duration::from_secs(24 * 60 * 60)),
            stir_within: Duration::from_secs(3),
            last_answers_within: Duration::from_millis(500),
            profiles: Profiles::default(),
            command_env: EnvPolicy::default(),
            command_timeout: Duration::from_secs(10),
            output_bytes_cap: 1024 * 1024,
            kept_output_bytes: MAX_MESSAGE_BYTES as u64 - AROUND_OUTPUT_BYTES,
            drain_within: Duration::from_secs(2),
            files: outpost_files::Limits::default(),
            open_files: 128,
            large_file_bytes: 16 * 1024 * 1024,
            file_operations: 32,
            file_threads: 256,
            listings: 4,
            http_requests: 128,
            http_window_bytes: 256 * 1024,
            http_body_bytes: 32 * 1024 * 1024,
            http_small_body_bytes: 256 * 1024,
            shutdown_within: Duration::from_millis(4500),
        }
    }
}

#[cfg(test)]
mod tests {
    use outpost_protocol::schema;

    use super::*;

    #[test]
    fn the_schema_tells_these_defaults() {
        let settings = Settings::default();
        let told = [
            format!("\"default\":{}", settings.command_timeout.as_millis()),
            format!("\"default\":{}", settings.output_bytes_cap),
        ];
        for document in ["process-spawn.json", "command-exec.json"] {
            let text = schema::documents()[document].to_string();
            for default in &told {
                assert!(text.contains(default), "{document}: {default}");
            }
        }
    }
}

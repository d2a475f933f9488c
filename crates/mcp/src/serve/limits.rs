//! Limits and timeouts of the tools.

use std::time::Duration;

use super::OutputRetention;

/// Limits and timeouts. The defaults are what ships.
#[derive(Clone, Debug)]
pub struct ToolLimits {
    /// Default timeout of `run_command`.
    pub run_timeout: Duration,
    /// Maximum timeout of `run_command`.
    pub run_timeout_max: Duration,
    /// Maximum time that a call waits for output.
    pub wait_max: Duration,
    /// Default time that `start_process` waits for the first output.
    pub first_output: Duration,
    /// Time to wait for the end of a command's output after its exit.
    pub drain: Duration,
    /// Default grace period between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Maximum grace period.
    pub grace_max: Duration,
    /// Time to wait for the end of a process after SIGKILL.
    pub kill_wait: Duration,
    /// Interval of progress notifications.
    pub progress: Duration,
    /// Time for pending calls to complete after the end of the input.
    pub call_drain: Duration,
    /// Time for their responses to be written after that.
    pub write_drain: Duration,
    /// Default size of each output stream in a response.
    pub output_bytes: usize,
    /// Maximum size of each output stream in a response.
    pub output_bytes_max: usize,
    /// Output that is kept of each stream of a process.
    pub retention: OutputRetention,
    /// Maximum number of running processes.
    pub running_processes: usize,
    /// Maximum number of exited processes whose output is kept.
    pub exited_processes: usize,
    /// Maximum total output of those.
    pub exited_bytes: usize,
    /// Maximum number of concurrent calls.
    pub concurrent_calls: usize,
    /// Maximum size of a message from the client.
    pub message_bytes: usize,
    /// Default size of file content in a response.
    pub file_bytes: usize,
    /// Maximum size of file content in a response.
    pub file_bytes_max: usize,
    /// Maximum size of a file that is edited or searched.
    pub whole_file_bytes: u64,
    /// Default number of file lines in a response.
    pub lines: u64,
    /// Maximum length of a line in a response.
    pub line_bytes: usize,
    /// Default number of directory entries in a response.
    pub entries: usize,
    /// Maximum number of directory entries in a response.
    pub entries_max: usize,
    /// Default number of matches in a response.
    pub matches: usize,
    /// Maximum number of matches in a response.
    pub matches_max: usize,
    /// Total size of names and lines at which a listing or search stops.
    pub listed_bytes: usize,
    /// Maximum number of directories per search.
    pub search_directories: usize,
    /// Maximum number of files per search.
    pub search_files: usize,
    /// Maximum number of bytes read per search.
    pub search_bytes: u64,
    /// Timeout of a search. Other file operations report their progress against it.
    pub search_timeout: Duration,
    /// Number of concurrent file operations per call.
    pub concurrency: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        ToolLimits {
            run_timeout: Duration::from_secs(120),
            run_timeout_max: Duration::from_secs(24 * 60 * 60),
            wait_max: Duration::from_secs(10 * 60),
            first_output: Duration::from_secs(1),
            drain: Duration::from_secs(1),
            grace: Duration::from_secs(2),
            grace_max: Duration::from_secs(60),
            kill_wait: Duration::from_secs(5),
            progress: Duration::from_secs(1),
            call_drain: Duration::from_secs(1),
            write_drain: Duration::from_secs(1),
            output_bytes: 20_000,
            output_bytes_max: 200_000,
            retention: OutputRetention {
                head: 128 * 1024,
                tail: 896 * 1024,
                chunks: 4096,
            },
            running_processes: 64,
            exited_processes: 64,
            exited_bytes: 64 * 1024 * 1024,
            concurrent_calls: 128,
            message_bytes: 48 * 1024 * 1024,
            file_bytes: 50_000,
            file_bytes_max: 400_000,
            whole_file_bytes: 16 * 1024 * 1024,
            lines: 1000,
            line_bytes: 2000,
            entries: 300,
            entries_max: 5000,
            matches: 100,
            matches_max: 1000,
            listed_bytes: 200_000,
            search_directories: 10_000,
            search_files: 20_000,
            search_bytes: 512 * 1024 * 1024,
            search_timeout: Duration::from_secs(60),
            concurrency: 16,
        }
    }
}

//! Makes the kernel kill programs before the server when memory is exhausted.

use rustix::process::Pid;

/// Added to the server's own score. The kernel compares the score with the used part of all memory in
/// thousandths, so a server that uses less than half of it outlives its programs.
const INCREASE: i32 = 500;
/// The highest score, see proc_pid_oom_score_adj(5).
const MAX: i32 = 1000;

/// Raises the out-of-memory score of a child that runs its program. Its descendants inherit it.
///
/// The child cannot do this before `execve`: it shares the memory of a process that is not dumpable, so
/// its files in `/proc` belong to root. A failure, as for a set-user-ID program, leaves the score as it is.
pub(crate) fn raise(child: Pid) {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj");
    let own: Option<i32> = own.ok().and_then(|own| own.trim().parse().ok());
    let score = own.unwrap_or(0).saturating_add(INCREASE).min(MAX);
    let path = format!("/proc/{child}/oom_score_adj");
    if let Err(error) = std::fs::write(path, score.to_string()) {
        tracing::debug!(%error, "cannot raise a child's out-of-memory score");
    }
}

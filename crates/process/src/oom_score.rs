//! Makes the kernel kill programs before the server when memory is exhausted.

use rustix::process::Pid;

/// Added to the server's own score. The kernel compares the score with the used part of all memory in
/// thousandths, so a server that uses less than half of it outlives its programs.
const INCREASE: i32 = 500;
/// The highest score, see proc_pid_oom_score_adj(5).
const MAX: i32 = 1000;

/// Returns the out-of-memory score of this process's children, as text.
pub(crate) fn of_children() -> String {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj");
    let own: Option<i32> = own.ok().and_then(|own| own.trim().parse().ok());
    let score = own.unwrap_or(0).saturating_add(INCREASE).min(MAX);
    score.to_string()
}

/// Raises the score of this process, whose children inherit it.
pub(crate) fn raise_own() {
    write("self", &of_children());
}

/// Raises the score of a child that runs its program, and could not do it before `execve`: it shares the memory
/// of the server, and if that is not dumpable, its files in `/proc` belong to root.
pub(crate) fn raise(child: Pid, score: &str) {
    write(&child.to_string(), score);
}

/// On failure, as for a set-user-ID program, the score stays.
fn write(process: &str, score: &str) {
    if let Err(error) = std::fs::write(format!("/proc/{process}/oom_score_adj"), score) {
        tracing::debug!(%error, "cannot raise an out-of-memory score");
    }
}

//! Programs that misbehave, as scripts for `/bin/sh`. Each says `ready` once it does.

/// Ignores the polite signals, and lives on.
pub const IGNORES_TERM: &str = "trap '' TERM HUP INT; echo ready; exec sleep 1000";

/// Leaves by itself and lets a child go on that holds its output open.
pub const HOLDS_THE_PIPE: &str = "sleep 1000 & echo ready; exit 0";

/// Leaves by itself and lets a child go on that has nothing of it.
pub const FORKS_AND_LEAVES: &str = "sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; exit 0";

/// Has a child in a session of its own, whose parent has gone: neither its group nor its parent
/// tells where it came from.
pub const DAEMON: &str = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 </dev/null & exit 0'; \
                          echo ready; exec sleep 1000";

/// As [`DAEMON`], and leaves by itself.
pub const LEAVES_A_DAEMON: &str =
    "setsid sh -c 'sleep 1000 >/dev/null 2>&1 </dev/null & exit 0'; echo ready; exit 0";

/// Has a child in a session of its own.
pub const LEAVES_ITS_GROUP: &str = "setsid sleep 1000 & echo ready; exec sleep 1000";

/// Writes as fast as it can, for ever.
pub const FLOODS: &str = "echo ready; exec cat /dev/zero";

/// Never reads its input.
pub const NEVER_READS: &str = "echo ready; exec sleep 1000";

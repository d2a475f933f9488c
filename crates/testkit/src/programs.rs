//! Misbehaving programs, as scripts for `/bin/sh`. Each prints `ready` when set up.

/// Ignores SIGTERM, SIGHUP and SIGINT.
pub const IGNORES_TERM: &str = "trap '' TERM HUP INT; echo ready; exec sleep 1000";

/// Exits and leaves a child that holds the output open.
pub const HOLDS_THE_PIPE: &str = "sleep 1000 & echo ready; exit 0";

/// Exits and leaves a child with redirected streams.
pub const FORKS_AND_LEAVES: &str = "sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; exit 0";

/// Has a daemon: a descendant in another session whose parent exited.
pub const DAEMON: &str = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 </dev/null & exit 0'; \
                          echo ready; exec sleep 1000";

/// Starts a daemon and exits.
pub const LEAVES_A_DAEMON: &str =
    "setsid sh -c 'sleep 1000 >/dev/null 2>&1 </dev/null & exit 0'; echo ready; exit 0";

/// Has a child in another session.
pub const LEAVES_ITS_GROUP: &str = "setsid sleep 1000 & echo ready; exec sleep 1000";

/// Writes as fast as possible, forever.
pub const FLOODS: &str = "echo ready; exec cat /dev/zero";

/// Never reads its input.
pub const NEVER_READS: &str = "echo ready; exec sleep 1000";

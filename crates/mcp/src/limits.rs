//! Every bound and every time of this room.

use std::time::Duration;

/// Bounds and times. The defaults are what ships.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest message that a server may send.
    pub message_bytes: usize,
    /// The longest line of its errors that is logged as one.
    pub stderr_line_bytes: usize,
    /// How long a server may take until it can be used, unless its
    /// configuration says otherwise.
    pub startup: Duration,
    /// How long a call may take, unless its configuration says otherwise.
    pub tool: Duration,
    /// How long a server is waited for that doesn't know the newest revision
    /// and doesn't say so either. It is asked in the older way then.
    pub discovery: Duration,
    /// How long the reason for a lost connection may take to follow the loss.
    pub reason: Duration,
    /// How long a server has to end by itself once its input has ended. Then it is
    /// told to.
    pub parting: Duration,
    /// How many tools, resources or templates of a server are listed.
    pub listed: usize,
    /// How long a server that has ended is left alone before it is started
    /// again. Nothing the first time, then this, then twice that and so on.
    pub revival_pause: Duration,
    /// The most that this becomes.
    pub revival_pause_max: Duration,
    /// A server that was there for so long counts as well again.
    pub well_after: Duration,
    /// How often in a row a server is started again.
    pub revivals: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message_bytes: 8 * 1024 * 1024,
            stderr_line_bytes: 1024 * 1024,
            startup: Duration::from_secs(10),
            tool: Duration::from_secs(60),
            discovery: Duration::from_secs(3),
            reason: Duration::from_secs(1),
            parting: Duration::from_secs(1),
            listed: 10_000,
            revival_pause: Duration::from_secs(1),
            revival_pause_max: Duration::from_secs(30),
            well_after: Duration::from_secs(60),
            revivals: 5,
        }
    }
}

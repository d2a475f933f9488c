//! Relays bytes between a program and its target.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

use super::Metered;

/// The size of the buffer of each direction.
const BUFFER_BYTES: usize = 64 * 1024;

/// Relays until both directions have ended, one has failed, or nothing was relayed for `idle_timeout`.
pub(crate) async fn relay<A, B>(mut client: A, mut target: Metered<B>, idle_timeout: Duration)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let idle = target.idle();
    let relayed =
        copy_bidirectional_with_sizes(&mut client, &mut target, BUFFER_BYTES, BUFFER_BYTES);
    tokio::select! {
        relayed = relayed => if let Err(error) = relayed {
            tracing::debug!(%error, "network proxy connection failed");
        },
        () = idle.reached(idle_timeout) => {
            tracing::debug!(?idle_timeout, "network proxy connection closed: no traffic");
        }
    }
}

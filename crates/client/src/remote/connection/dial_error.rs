//! Errors of opening a connection to a server.

use std::{io, process::ExitStatus};

use outpost_rpc::ws::UpgradeError;

use super::{tls::Fingerprint, tls_errors::explained};
use crate::remote::token::SecretError;

/// HTTP statuses of a rejected upgrade: authentication is required (401), access is denied (403).
pub(super) const UNAUTHORIZED: u16 = 401;
pub(super) const FORBIDDEN: u16 = 403;
/// HTTP status after too many attempts (429).
const TOO_MANY_REQUESTS: u16 = 429;

/// Why a server can't be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL is invalid.
    #[error("invalid URL: {0}")]
    Url(&'static str),
    /// The connection could not be opened.
    #[error("{0}")]
    Connect(io::Error),
    /// The TLS handshake failed.
    #[error("TLS: {}", explained(.0))]
    Tls(io::Error),
    /// The server has a certificate that is not from a trusted authority.
    #[error("the server's certificate is not from a trusted authority; its fingerprint is {found}")]
    UntrustedCertificate {
        /// The fingerprint of the server's certificate.
        found: Fingerprint,
    },
    /// The server has another certificate than the pinned one.
    #[error(
        "the server's certificate has the fingerprint {found}, not the expected one; \
         if its operator has replaced it, use the new fingerprint"
    )]
    WrongCertificate {
        /// The fingerprint of the server's certificate.
        found: Fingerprint,
    },
    /// The token would be readable on the network.
    #[error("refusing to send a token over an unencrypted connection to {host}")]
    Unencrypted {
        /// The host of the URL.
        host: String,
    },
    /// The token can't be read.
    #[error(transparent)]
    Token(#[from] SecretError),
    /// The server rejected the upgrade with HTTP status 401 (no token or an invalid one) or 403 (no
    /// access).
    #[error(
        "the server refused {} (HTTP status {status}{}{reason}); {}",
        if (*.status, *.had_token) == (UNAUTHORIZED, true) { "the token" } else { "the connection" },
        if .reason.is_empty() { "" } else { ": " },
        unauthorized_remedy(*.status, *.had_token)
    )]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The server's text, on one line and with control characters escaped.
        reason: String,
        /// Whether a token was sent.
        had_token: bool,
        /// Whether that token is from a file, which may get a new one.
        replaceable: bool,
    },
    /// The WebSocket handshake failed.
    #[error(transparent)]
    UpgradeRequest(#[from] UpgradeError),
    /// The command that connects to the server has ended before there was a connection.
    #[error("the command that connects to the server ended with {status}")]
    RelayEnded {
        /// Its exit status.
        status: ExitStatus,
    },
    /// The server could not be launched.
    #[error("cannot launch the server: {0}")]
    Launch(io::Error),
    /// The server was launched and has ended, so it can't be dialed again.
    #[error("a launched server can't be reached a second time")]
    Spent,
}

impl DialError {
    /// Whether no server listens at the address, or it was just shutting down.
    #[must_use]
    pub fn is_not_listening(&self) -> bool {
        match self {
            DialError::Connect(error) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ),
            DialError::UpgradeRequest(UpgradeError::Io(_)) => true,
            _ => false,
        }
    }

    /// Whether a retry would fail as well.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            DialError::Url(_)
            | DialError::Launch(_)
            | DialError::Spent
            | DialError::Unencrypted { .. }
            | DialError::WrongCertificate { .. } => true,
            DialError::Unauthorized { replaceable, .. } => !replaceable,
            DialError::UpgradeRequest(UpgradeError::Rejected { status, .. }) => {
                *status < 500 && *status != TOO_MANY_REQUESTS
            }
            // A token file may be about to be replaced.
            DialError::Token(_)
            | DialError::Connect(_)
            | DialError::Tls(_)
            | DialError::UntrustedCertificate { .. }
            | DialError::UpgradeRequest(_)
            | DialError::RelayEnded { .. } => false,
        }
    }
}

/// Returns what to do about a refused connection.
fn unauthorized_remedy(status: u16, had_token: bool) -> &'static str {
    match (status, had_token) {
        (UNAUTHORIZED, false) => "connect with a token",
        (UNAUTHORIZED, true) => "it is wrong, expired or revoked: get a new one",
        _ => "ask the server's operator for access",
    }
}

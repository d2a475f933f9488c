//! State of the `initialize` handshake. Pure.

use outpost_protocol::{ErrorKind, Family, RpcError};

/// Handshake state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// `initialize` is expected.
    #[default]
    New,
    /// `initialize` was answered; `initialized` is expected.
    Answered,
    /// `initialized` was received.
    Ready,
}

impl Handshake {
    /// Checks whether methods of a family may be called.
    pub(crate) fn admits(self, family: Family) -> Result<(), RpcError> {
        if family == Family::App {
            return match self {
                Handshake::New => Err(rejected("Not initialized")),
                Handshake::Answered | Handshake::Ready => Ok(()),
            };
        }
        let step = match self {
            Handshake::New => "call initialize",
            Handshake::Answered => "send initialized",
            Handshake::Ready => return Ok(()),
        };
        let family = family.name();
        Err(rejected(format!(
            "client must {step} before using {family} methods"
        )))
    }

    /// Checks whether `initialize` may be called. A client that sends `clientInfo` gets the
    /// app-server's error message.
    pub(crate) fn admits_initialize(
        self,
        has_client_info: impl FnOnce() -> bool,
    ) -> Result<(), RpcError> {
        match self {
            Handshake::New => Ok(()),
            _ if has_client_info() => Err(rejected("Already initialized")),
            _ => Err(rejected("initialize may only be sent once per connection")),
        }
    }
}

fn rejected(message: impl Into<String>) -> RpcError {
    RpcError::invalid_request(message).with_kind(ErrorKind::Handshake)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_requests_are_rejected_with_the_missing_step() {
        let message = |handshake: Handshake, family| handshake.admits(family).unwrap_err().message;
        assert_eq!(
            message(Handshake::New, Family::Exec),
            "client must call initialize before using exec methods"
        );
        assert_eq!(
            message(Handshake::Answered, Family::EnvironmentInfo),
            "client must send initialized before using environment info methods"
        );
        assert!(Handshake::Ready.admits(Family::Filesystem).is_ok());
        assert_eq!(message(Handshake::New, Family::App), "Not initialized");
        assert!(Handshake::Answered.admits(Family::App).is_ok());
    }

    #[test]
    fn second_initialize_is_rejected() {
        assert!(Handshake::New.admits_initialize(|| false).is_ok());
        let again = Handshake::Ready.admits_initialize(|| false).unwrap_err();
        assert_eq!(
            again.message,
            "initialize may only be sent once per connection"
        );
        let again = Handshake::Answered.admits_initialize(|| true).unwrap_err();
        assert_eq!(again.message, "Already initialized");
    }
}

//! What may be asked when. Pure.

use outpost_protocol::{Family, RpcError};

/// How far a connection's handshake has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Nothing was said yet.
    #[default]
    New,
    /// `initialize` was answered.
    Answered,
    /// `initialized` was received: everything may be asked.
    Ready,
}

impl Handshake {
    /// Whether methods of a family may be used now.
    pub(crate) fn admits(self, family: Family) -> Result<(), RpcError> {
        if family == Family::App {
            return match self {
                Handshake::New => Err(RpcError::invalid_request("Not initialized")),
                Handshake::Answered | Handshake::Ready => Ok(()),
            };
        }
        let what = match self {
            Handshake::New => "call initialize",
            Handshake::Answered => "send initialized",
            Handshake::Ready => return Ok(()),
        };
        let family = family.name();
        Err(RpcError::invalid_request(format!(
            "client must {what} before using {family} methods"
        )))
    }

    /// Whether `initialize` may be called now; who introduces itself the
    /// app-server's way hears it in the app-server's words.
    pub(crate) fn admits_initialize(
        self,
        has_client_info: impl FnOnce() -> bool,
    ) -> Result<(), RpcError> {
        match self {
            Handshake::New => Ok(()),
            _ if has_client_info() => Err(RpcError::invalid_request("Already initialized")),
            _ => Err(RpcError::invalid_request(
                "initialize may only be sent once per connection",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_what_is_missing() {
        let words = |handshake: Handshake, family| handshake.admits(family).unwrap_err().message;
        assert_eq!(
            words(Handshake::New, Family::Exec),
            "client must call initialize before using exec methods"
        );
        assert_eq!(
            words(Handshake::Answered, Family::EnvironmentInfo),
            "client must send initialized before using environment info methods"
        );
        assert!(Handshake::Ready.admits(Family::Filesystem).is_ok());
        assert_eq!(words(Handshake::New, Family::App), "Not initialized");
        assert!(Handshake::Answered.admits(Family::App).is_ok());
    }

    #[test]
    fn initialize_comes_once() {
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

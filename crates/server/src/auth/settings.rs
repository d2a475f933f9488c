//! How clients authenticate, as configured.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Principals, TokenHash};

/// The default of [`AuthSettings::ws_max_clock_skew`].
pub const DEFAULT_MAX_CLOCK_SKEW: Duration = Duration::from_secs(30);

/// The settings that only `admin` may read, because they help to pose as a principal: names of principals, the
/// hash of a token, and paths of secrets.
pub const PRIVATE_SETTINGS: [&str; 10] = [
    "audit_log",
    "jwks_file",
    "principals",
    "tls_cert",
    "tls_client_ca",
    "tls_key",
    "tokens_file",
    "ws_shared_secret_file",
    "ws_token_file",
    "ws_token_sha256",
];

/// How WebSocket clients authenticate (`--ws-auth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebSocketAuth {
    /// Clients need no token, or a named token.
    #[default]
    None,
    /// All clients have one token.
    CapabilityToken,
    /// Each client has a signed token (JWT).
    SignedBearerToken,
}

/// How clients authenticate, and what they may do.
#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// `--ws-auth`.
    pub ws_auth: WebSocketAuth,
    /// The file of the capability token.
    pub ws_token_file: Option<PathBuf>,
    /// The hash of the capability token.
    pub ws_token_sha256: Option<TokenHash>,
    /// The file of the secret that signs tokens with HS256.
    pub ws_shared_secret_file: Option<PathBuf>,
    /// The file of the public keys that verify tokens, a JWK set.
    pub jwks_file: Option<PathBuf>,
    /// The required issuer of signed tokens.
    pub ws_issuer: Option<String>,
    /// The required audience of signed tokens.
    pub ws_audience: Option<String>,
    /// Tolerated difference between the clocks of the issuer and this host, if it is not
    /// [`DEFAULT_MAX_CLOCK_SKEW`].
    pub ws_max_clock_skew: Option<Duration>,
    /// The file of named tokens.
    pub tokens_file: Option<PathBuf>,
    /// Admits every local user on loopback addresses if no token is needed.
    pub allow_local_users: bool,
    /// Principals and their permissions.
    pub principals: Principals,
}

/// Flags of authentication that do not belong together. The texts are those of the released servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthSettingsError {
    /// `capability-token` without a token.
    #[error(
        "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"
    )]
    NoToken,
    /// Two tokens.
    #[error("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive")]
    TwoTokens,
    /// `signed-bearer-token` without a key.
    #[error("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")]
    NoKey,
    /// A shared secret and public keys.
    #[error("`--ws-shared-secret-file` and `--jwks-file` are mutually exclusive")]
    TwoKeys,
    /// Flags without `--ws-auth`.
    #[error(
        "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
    )]
    NoAuth,
    /// A capability token together with signed tokens.
    #[error(
        "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`"
    )]
    UnusedToken,
    /// Flags of signed tokens together with a capability token.
    #[error(
        "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`"
    )]
    UnusedKey,
    /// Public keys together with a capability token.
    #[error("`--jwks-file` requires `--ws-auth signed-bearer-token`")]
    UnusedJwks,
}

impl AuthSettings {
    /// Whether WebSocket clients need a token.
    #[must_use]
    pub fn needs_token(&self) -> bool {
        self.ws_auth != WebSocketAuth::None || self.tokens_file.is_some()
    }

    /// Checks that the flags belong together.
    pub fn check(&self) -> Result<(), AuthSettingsError> {
        let has_token = self.ws_token_file.is_some() || self.ws_token_sha256.is_some();
        let has_key = self.ws_shared_secret_file.is_some() || self.jwks_file.is_some();
        let has_signed_flags = self.ws_shared_secret_file.is_some()
            || self.ws_issuer.is_some()
            || self.ws_audience.is_some()
            || self.ws_max_clock_skew.is_some();
        if self.ws_token_file.is_some() && self.ws_token_sha256.is_some() {
            return Err(AuthSettingsError::TwoTokens);
        }
        if self.ws_shared_secret_file.is_some() && self.jwks_file.is_some() {
            return Err(AuthSettingsError::TwoKeys);
        }
        let error = match self.ws_auth {
            WebSocketAuth::None => {
                (has_token || has_signed_flags || has_key).then_some(AuthSettingsError::NoAuth)
            }
            WebSocketAuth::CapabilityToken if has_signed_flags => {
                Some(AuthSettingsError::UnusedKey)
            }
            WebSocketAuth::CapabilityToken if has_key => Some(AuthSettingsError::UnusedJwks),
            WebSocketAuth::CapabilityToken => (!has_token).then_some(AuthSettingsError::NoToken),
            WebSocketAuth::SignedBearerToken if has_token => Some(AuthSettingsError::UnusedToken),
            WebSocketAuth::SignedBearerToken => (!has_key).then_some(AuthSettingsError::NoKey),
        };
        match error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_do_not_belong_together_are_errors() {
        let file = || Some(PathBuf::from("/run/secret"));
        let capability = AuthSettings {
            ws_auth: WebSocketAuth::CapabilityToken,
            ..AuthSettings::default()
        };
        let signed = AuthSettings {
            ws_auth: WebSocketAuth::SignedBearerToken,
            ..AuthSettings::default()
        };
        let with = |settings: &AuthSettings, change: fn(&mut AuthSettings)| {
            let mut settings = settings.clone();
            change(&mut settings);
            settings.check().err().map(|error| error.to_string())
        };
        let none = AuthSettings::default();
        let found = [
            with(&none, |_| {}),
            with(&none, |all| all.tokens_file = Some("/x".into())),
            with(&none, |all| all.ws_issuer = Some("us".to_owned())),
            with(&capability, |_| {}),
            with(&capability, |all| all.ws_token_file = Some("/x".into())),
            with(&capability, |all| {
                all.ws_token_file = Some("/x".into());
                all.ws_token_sha256 = Some(TokenHash::of("x"));
            }),
            with(&capability, |all| {
                all.ws_token_file = Some("/x".into());
                all.jwks_file = Some("/y".into());
            }),
            with(&capability, |all| {
                all.ws_token_file = Some("/x".into());
                all.ws_max_clock_skew = Some(Duration::ZERO);
            }),
            with(&signed, |all| {
                all.ws_token_sha256 = Some(TokenHash::of("x"));
            }),
            with(&signed, |_| {}),
            with(&signed, |all| all.jwks_file = Some("/x".into())),
        ];
        let unused = "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`";
        let expected = [
            None,
            None,
            Some(unused),
            Some(
                "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set",
            ),
            None,
            Some("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive"),
            Some("`--jwks-file` requires `--ws-auth signed-bearer-token`"),
            Some(
                "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`",
            ),
            Some(
                "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`",
            ),
            Some(
                "`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set",
            ),
            None,
        ];
        assert_eq!(found.each_ref().map(|text| text.as_deref()), expected);
        let both = AuthSettings {
            ws_shared_secret_file: file(),
            jwks_file: file(),
            ..signed
        };
        assert_eq!(both.check(), Err(AuthSettingsError::TwoKeys));
    }
}

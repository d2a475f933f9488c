//! Checks the credentials of WebSocket upgrades against files that may change.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use hyper::header::HeaderMap;
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tokio::{sync::watch, time::Instant};

use super::{
    AuthSettings, AuthSettingsError, ClientCertificate, DEFAULT_MAX_CLOCK_SKEW, NamedToken,
    Principal, SecretFileError, TokenFile, TokenFileError, TokenHash,
    failed_attempts::FailedAttempts,
    find_token,
    jwt::{JwksError, JwtVerifier, KeyFingerprint, MIN_SECRET_BYTES},
    read_secret_file, read_trusted_file,
};
use crate::Peer;

/// A capability token with fewer bytes is reported.
const MIN_TOKEN_BYTES: usize = 16;
/// The principal of the capability token.
const CAPABILITY_PRINCIPAL: &str = "capability-token";

/// The principal of a signed token without a subject.
const ANONYMOUS_PRINCIPAL: &str = "signed-token";

/// The longest time until the expiry of a token is compared with the clock again, which may be set.
const MAX_EXPIRY_SLEEP: Duration = Duration::from_secs(30);

/// Checks the credentials of WebSocket upgrades.
pub struct Authenticator {
    settings: AuthSettings,
    /// Read by every upgrade and watched by every authenticated connection.
    verifiers: watch::Sender<Verifiers>,
    failed: Mutex<FailedAttempts>,
}

/// The contents of the files that tokens are checked against.
#[derive(Clone, Debug, Default)]
struct Verifiers {
    capability: Option<TokenHash>,
    jwt: Option<Arc<JwtVerifier>>,
    tokens: Arc<TokenFile>,
}

/// A file that tokens are checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TokenSource {
    NamedTokens,
    CapabilityToken,
    /// The shared secret or the public keys of signed tokens.
    SignatureKeys,
}

/// An authenticated client.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) principal: Principal,
    credential: Credential,
    /// Until when its credential is accepted.
    accepted_until: Option<SystemTime>,
}

/// The credential that a client authenticated with.
#[derive(Clone, Debug)]
enum Credential {
    Capability(TokenHash),
    Named(NamedToken),
    /// With the key that verified it.
    Signed(KeyFingerprint),
    Certificate,
}

/// Why a client is not authenticated. The texts are those of the released servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("missing websocket bearer token")]
    MissingToken,
    #[error("invalid authorization header")]
    InvalidHeader,
    #[error("invalid websocket bearer token")]
    InvalidToken,
    #[error("invalid websocket jwt")]
    InvalidJwt,
    #[error("expired websocket jwt")]
    ExpiredJwt,
    #[error("websocket jwt is not valid yet")]
    JwtNotYetValid,
    #[error("websocket jwt issuer mismatch")]
    JwtIssuer,
    #[error("websocket jwt audience mismatch")]
    JwtAudience,
}

/// Error of loading what tokens are checked against.
#[derive(Debug, thiserror::Error)]
pub enum AuthLoadError {
    /// The flags do not belong together.
    #[error(transparent)]
    Settings(#[from] AuthSettingsError),
    /// A secret file cannot be read.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// A secret file holds nothing.
    #[error("websocket auth secret {0} must not be empty")]
    Empty(PathBuf),
    /// A secret file holds no text.
    #[error("websocket auth secret {0} is not UTF-8 text")]
    Encoding(PathBuf),
    /// The shared secret can be guessed.
    #[error("signed websocket bearer secret {0} must be at least 32 bytes")]
    ShortSecret(PathBuf),
    /// The file of named tokens cannot be parsed.
    #[error("cannot parse {path}: {cause}")]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: TokenFileError,
    },
    /// The file of public keys cannot be parsed.
    #[error("cannot parse {path}: {cause}")]
    Jwks {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: JwksError,
    },
}

impl Authenticator {
    /// Reads the files that the settings name.
    pub fn load(settings: AuthSettings) -> Result<Self, AuthLoadError> {
        settings.check()?;
        let authenticator = Authenticator {
            settings,
            ..Authenticator::default()
        };
        let mut verifiers = Verifiers {
            capability: authenticator.settings.ws_token_sha256,
            ..Verifiers::default()
        };
        for (source, path) in authenticator.files() {
            verifiers.load(&authenticator.settings, source, path)?;
        }
        authenticator.verifiers.send_replace(verifiers);
        Ok(authenticator)
    }

    /// How clients authenticate.
    #[must_use]
    pub fn settings(&self) -> &AuthSettings {
        &self.settings
    }

    /// The files that are read again when they change.
    pub(crate) fn files(&self) -> impl Iterator<Item = (TokenSource, &Path)> {
        let settings = &self.settings;
        let files = [
            (TokenSource::NamedTokens, &settings.tokens_file),
            (TokenSource::CapabilityToken, &settings.ws_token_file),
            (TokenSource::SignatureKeys, &settings.ws_shared_secret_file),
            (TokenSource::SignatureKeys, &settings.jwks_file),
        ];
        let named = files.into_iter();
        named.filter_map(|(source, path)| Some((source, path.as_deref()?)))
    }

    /// Reads a file again. If it cannot be used, everything stays as it was. Blocks.
    pub(crate) fn reload(&self, source: TokenSource, path: &Path) -> Result<(), AuthLoadError> {
        let mut loaded = Verifiers::default();
        loaded.load(&self.settings, source, path)?;
        self.verifiers.send_modify(|verifiers| match source {
            TokenSource::NamedTokens => verifiers.tokens = loaded.tokens,
            TokenSource::CapabilityToken => verifiers.capability = loaded.capability,
            TokenSource::SignatureKeys => verifiers.jwt = loaded.jwt,
        });
        Ok(())
    }

    /// Checks the token of an upgrade.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Identity, Rejection> {
        let token = find_token(headers)?;
        let verifiers = self.verifiers.borrow().clone();
        let hash = TokenHash::of(&token);
        let principals = &self.settings.principals;
        if let Some(named) = verifiers.tokens.find(&hash, now) {
            let scopes = named.scopes.as_deref();
            return Ok(Identity {
                principal: Principal::authenticated(principals, &named.name, scopes),
                credential: Credential::Named(named.clone()),
                accepted_until: named.expires_at(),
            });
        }
        if verifiers.has_capability(&hash) {
            return Ok(Identity {
                principal: Principal::authenticated(principals, CAPABILITY_PRINCIPAL, None),
                credential: Credential::Capability(hash),
                accepted_until: None,
            });
        }
        let jwt = verifiers.jwt.as_ref().ok_or(Rejection::InvalidToken)?;
        let verified = jwt.verify(&token, now)?;
        let subject = verified.subject.as_deref().unwrap_or(ANONYMOUS_PRINCIPAL);
        Ok(Identity {
            principal: Principal::authenticated(principals, subject, None),
            credential: Credential::Signed(verified.key),
            accepted_until: Some(verified.accepted_until),
        })
    }

    /// Returns the identity of a client with a verified certificate.
    pub(crate) fn certified(&self, certificate: &ClientCertificate) -> Identity {
        let principals = &self.settings.principals;
        Identity {
            principal: Principal::authenticated(principals, &certificate.name, None),
            credential: Credential::Certificate,
            accepted_until: Some(certificate.valid_until),
        }
    }

    /// Returns the principal of a client, which has no identity if it needs no token.
    pub(crate) fn principal(&self, peer: Peer, identity: Option<&Identity>) -> Principal {
        match identity {
            Some(identity) => identity.principal.clone(),
            None => Principal::local(&self.settings.principals, peer),
        }
    }

    /// Waits until the credential of a client expires or is revoked. Cancel safe.
    pub(crate) async fn wait_until_invalid(&self, identity: &Identity) {
        let mut changes = self.verifiers.subscribe();
        loop {
            let now = SystemTime::now();
            let left = match identity.accepted_until {
                Some(until) => until.duration_since(now).unwrap_or_default(),
                None => Duration::MAX,
            };
            if left.is_zero()
                || !changes
                    .borrow_and_update()
                    .accepts(&identity.credential, now)
            {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(MAX_EXPIRY_SLEEP)) => {}
                // The sender lives as long as `self`.
                _ = changes.changed() => {}
            }
        }
    }

    /// Counts a failed attempt, and logs the reason. Returns how long its answer has to wait.
    pub(crate) fn record_failure(
        &self,
        address: IpAddr,
        rejection: Rejection,
        headers: &HeaderMap,
    ) -> Duration {
        let expired = self.expired_token(headers);
        let principal = expired.as_deref();
        let reason = match principal {
            // The client is not told that its token was valid once.
            Some(_) => "expired token".to_owned(),
            None => rejection.to_string(),
        };
        let mut failed = self.failed.lock();
        let delay = failed.record(address, Instant::now());
        let total = failed.total();
        tracing::warn!(%address, reason, principal, total, "authentication failed");
        delay
    }

    /// Counts a refused client. Returns the number of refusals of its address that a line of the audit log has to
    /// stand for, if there is to be one now.
    pub(crate) fn record_refusal(&self, address: Peer) -> Option<u64> {
        self.failed.lock().record_refusal(address, Instant::now())
    }

    /// The name of the expired token that a client has sent, if it is one of the named tokens.
    fn expired_token(&self, headers: &HeaderMap) -> Option<String> {
        let hash = TokenHash::of(&find_token(headers).ok()?);
        let tokens = Arc::clone(&self.verifiers.borrow().tokens);
        let named = tokens.find(&hash, SystemTime::UNIX_EPOCH)?;
        Some(named.name.clone())
    }
}

impl Default for Authenticator {
    /// Needs no token.
    fn default() -> Self {
        Authenticator {
            settings: AuthSettings::default(),
            verifiers: watch::Sender::default(),
            failed: Mutex::default(),
        }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Verifiers {
    fn load(
        &mut self,
        settings: &AuthSettings,
        source: TokenSource,
        path: &Path,
    ) -> Result<(), AuthLoadError> {
        match source {
            TokenSource::NamedTokens => {
                let tokens = TokenFile::parse(&read_secret_file(path)?);
                let tokens = tokens.map_err(|cause| AuthLoadError::Tokens {
                    path: path.to_owned(),
                    cause,
                })?;
                self.tokens = Arc::new(tokens);
            }
            TokenSource::CapabilityToken => {
                let token = read_text(path)?;
                if token.len() < MIN_TOKEN_BYTES {
                    // Not refused: existing deployments of the released servers move over unchanged.
                    tracing::warn!(
                        path = %path.display(),
                        bytes = token.len(),
                        "capability token is short enough to be guessed; use at least {MIN_TOKEN_BYTES} bytes"
                    );
                }
                self.capability = Some(TokenHash::of(&token));
            }
            TokenSource::SignatureKeys => {
                let verifier = jwt_verifier(settings, path)?.requiring(
                    settings.ws_issuer.clone(),
                    settings.ws_audience.clone(),
                    settings.ws_max_clock_skew.unwrap_or(DEFAULT_MAX_CLOCK_SKEW),
                );
                self.jwt = Some(Arc::new(verifier));
            }
        }
        Ok(())
    }

    fn has_capability(&self, hash: &TokenHash) -> bool {
        self.capability
            .is_some_and(|capability| capability.ct_eq(hash).into())
    }

    /// Whether a credential that was accepted before still means what it meant then.
    fn accepts(&self, credential: &Credential, now: SystemTime) -> bool {
        match credential {
            Credential::Capability(hash) => self.has_capability(hash),
            Credential::Named(token) => self.tokens.find(&token.sha256, now) == Some(token),
            Credential::Signed(key) => self.jwt.as_ref().is_some_and(|jwt| jwt.has_key(key)),
            Credential::Certificate => true,
        }
    }
}

fn jwt_verifier(settings: &AuthSettings, path: &Path) -> Result<JwtVerifier, AuthLoadError> {
    if settings.jwks_file.is_some() {
        let verifier = JwtVerifier::with_jwks(&read_trusted_file(path)?);
        return verifier.map_err(|cause| AuthLoadError::Jwks {
            path: path.to_owned(),
            cause,
        });
    }
    let secret = read_text(path)?;
    if secret.len() < MIN_SECRET_BYTES {
        return Err(AuthLoadError::ShortSecret(path.to_owned()));
    }
    Ok(JwtVerifier::with_secret(secret.as_bytes()))
}

/// Reads the text of a secret file without the blanks around it.
fn read_text(path: &Path) -> Result<String, AuthLoadError> {
    let bytes = read_secret_file(path)?;
    let text = str::from_utf8(&bytes).map_err(|_| AuthLoadError::Encoding(path.to_owned()))?;
    match text.trim() {
        "" => Err(AuthLoadError::Empty(path.to_owned())),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::OpenOptionsExt as _};

    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use hyper::header::{self, HeaderValue};
    use ring::signature::KeyPair as _;

    use super::*;
    use crate::auth::WebSocketAuth;

    fn secret(dir: &tempfile::TempDir, text: &str) -> PathBuf {
        let path = dir.path().join("secret");
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        std::io::Write::write_all(&mut file.open(&path).unwrap(), text.as_bytes()).unwrap();
        path
    }

    /// A key that signs tokens.
    struct Ed25519 {
        pair: ring::signature::Ed25519KeyPair,
        /// As in a JWK.
        public: String,
    }

    impl Ed25519 {
        fn new() -> Self {
            let random = ring::rand::SystemRandom::new();
            let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).unwrap();
            let pair = ring::signature::Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
            let public = URL_SAFE_NO_PAD.encode(pair.public_key());
            Ed25519 { pair, public }
        }

        fn token(&self, now: SystemTime) -> String {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let claims = format!(r#"{{"exp": {}}}"#, since.as_secs() + 1000);
            let [header, claims] =
                [r#"{"alg": "EdDSA"}"#, &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
            let signed = format!("{header}.{claims}");
            let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
            format!("{signed}.{signature}")
        }
    }

    fn bearer(token: &str) -> HeaderMap {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    fn with_token_file(path: PathBuf) -> AuthSettings {
        AuthSettings {
            ws_auth: WebSocketAuth::CapabilityToken,
            ws_token_file: Some(path),
            ..AuthSettings::default()
        }
    }

    #[test]
    fn capability_token_is_trimmed_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        let auth = Authenticator::load(with_token_file(secret(&dir, " s3cret\n"))).unwrap();
        let now = SystemTime::now();
        let identity = auth.authenticate(&bearer("s3cret"), now).unwrap();
        assert_eq!(identity.principal.name, CAPABILITY_PRINCIPAL);
        let rejected = auth.authenticate(&bearer("s3cre"), now).unwrap_err();
        assert_eq!(rejected.to_string(), "invalid websocket bearer token");
        let rejected = auth.authenticate(&HeaderMap::new(), now).unwrap_err();
        assert_eq!(rejected.to_string(), "missing websocket bearer token");
    }

    #[test]
    fn unusable_secrets_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = secret(&dir, " \n");
        let error = Authenticator::load(with_token_file(path.clone())).unwrap_err();
        let path = path.display();
        assert_eq!(
            error.to_string(),
            format!("websocket auth secret {path} must not be empty")
        );
        let settings = AuthSettings {
            ws_auth: WebSocketAuth::SignedBearerToken,
            ws_shared_secret_file: Some(secret(&dir, &"x".repeat(31))),
            ..AuthSettings::default()
        };
        let error = Authenticator::load(settings).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("signed websocket bearer secret {path} must be at least 32 bytes")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn revoked_token_becomes_invalid() {
        let dir = tempfile::tempdir().unwrap();
        let line = |name: &str, token: &str| {
            let hash = TokenHash::of(token);
            format!("[[tokens]]\nname = {name:?}\nsha256 = \"{hash}\"\ncreated = 1\n")
        };
        let both = line("a", "one") + &line("b", "two");
        let settings = AuthSettings {
            tokens_file: Some(secret(&dir, &both)),
            ..AuthSettings::default()
        };
        let auth = Authenticator::load(settings).unwrap();
        let now = SystemTime::now();
        let one = auth.authenticate(&bearer("one"), now).unwrap();
        let two = auth.authenticate(&bearer("two"), now).unwrap();
        let reload = |text: &str| {
            let path = secret(&dir, text);
            auth.reload(TokenSource::NamedTokens, &path)
        };
        reload("broken").unwrap_err();
        assert!(auth.authenticate(&bearer("one"), now).is_ok(), "as it was");
        reload(&line("b", "two")).unwrap();
        auth.wait_until_invalid(&one).await;
        let waited = tokio::time::timeout(Duration::from_secs(100), auth.wait_until_invalid(&two));
        assert!(waited.await.is_err(), "the other token is still valid");
        reload(&(line("b", "two") + "scopes = [\"exec\"]\n")).unwrap();
        auth.wait_until_invalid(&two).await;
    }

    #[tokio::test(start_paused = true)]
    async fn removed_key_makes_its_tokens_invalid() {
        let dir = tempfile::tempdir().unwrap();
        let set = |keys: &[&str]| {
            let keys: Vec<_> = keys
                .iter()
                .map(|x| format!(r#"{{"kty": "OKP", "crv": "Ed25519", "x": "{x}"}}"#))
                .collect();
            secret(&dir, &format!(r#"{{"keys": [{}]}}"#, keys.join(",")))
        };
        let (first, second) = (Ed25519::new(), Ed25519::new());
        let path = set(&[&first.public, &second.public]);
        let settings = AuthSettings {
            ws_auth: WebSocketAuth::SignedBearerToken,
            jwks_file: Some(path.clone()),
            ..AuthSettings::default()
        };
        let auth = Authenticator::load(settings).unwrap();
        let now = SystemTime::now();
        let [one, two] =
            [&first, &second].map(|key| auth.authenticate(&bearer(&key.token(now)), now).unwrap());
        set(&[&second.public]);
        auth.reload(TokenSource::SignatureKeys, &path).unwrap();
        auth.wait_until_invalid(&one).await;
        let waited = tokio::time::timeout(Duration::from_secs(100), auth.wait_until_invalid(&two));
        assert!(waited.await.is_err(), "its key is still there");
    }

    #[test]
    fn files_are_reloaded_independently() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        let hash = TokenHash::of("named");
        let text = format!("[[tokens]]\nname = \"a\"\nsha256 = \"{hash}\"\ncreated = 1\n");
        fs::rename(secret(&dir, &text), &tokens).unwrap();
        let capability = secret(&dir, "s3cret");
        let settings = AuthSettings {
            tokens_file: Some(tokens.clone()),
            ..with_token_file(capability.clone())
        };
        let auth = Authenticator::load(settings).unwrap();
        let now = SystemTime::now();
        fs::remove_file(&capability).unwrap();
        fs::rename(secret(&dir, ""), &tokens).unwrap();
        for (source, path) in auth.files() {
            let _ = auth.reload(source, path);
        }
        assert!(auth.authenticate(&bearer("s3cret"), now).is_ok(), "kept");
        assert!(auth.authenticate(&bearer("named"), now).is_err(), "revoked");
    }
}

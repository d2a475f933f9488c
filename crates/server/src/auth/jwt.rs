//! Signed bearer tokens: JWTs (RFC 7519) in the compact serialization of JWS (RFC 7515).
//!
//! The algorithm belongs to the key. The algorithm that a token names must equal it, so that a token
//! cannot choose `none`, or a public key as a shared secret.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{digest, hmac, signature};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Rejection;

/// Shortest shared secret. HS256 is as strong as its hash with it (RFC 7518, section 3.2).
pub(super) const MIN_SECRET_BYTES: usize = 32;

/// Length of a coordinate of Ed25519 and of P-256.
const COORDINATE_BYTES: usize = 32;

/// Shortest modulus of an RSA key (RFC 7518, section 3.3).
const MIN_RSA_BYTES: usize = 2048 / 8;

/// Checks signed tokens.
#[derive(Debug)]
pub(super) struct JwtVerifier {
    keys: Vec<Key>,
    issuer: Option<String>,
    audience: Option<String>,
    /// Tolerated difference between the issuer's clock and ours.
    max_clock_skew: Duration,
}

/// A valid token: who it speaks for, and until when it is accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VerifiedJwt {
    pub(super) subject: Option<String>,
    pub(super) accepted_until: SystemTime,
    /// The key that verified it.
    pub(super) key: KeyFingerprint,
}

/// SHA-256 of a key and its algorithm.
pub(super) type KeyFingerprint = [u8; 32];

/// A verification key and its algorithm.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    fingerprint: KeyFingerprint,
    material: KeyMaterial,
}

/// A key with its algorithm.
#[derive(Debug)]
enum KeyMaterial {
    Hs256(hmac::Key),
    Es256(Vec<u8>),
    EdDsa(Vec<u8>),
    Rs256 { modulus: Vec<u8>, exponent: Vec<u8> },
}

/// Error of parsing a JWK set.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    /// It is not a JWK set (RFC 7517).
    #[error("not a JWK set: {0}")]
    Json(#[from] serde_json::Error),
    /// No key can be used.
    #[error("no EdDSA (Ed25519), ES256 (P-256) or RS256 (RSA) key in the JWK set")]
    NoKey,
}

/// The header of a JWT (RFC 7515, section 4.1).
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// The claims that are checked (RFC 7519, section 4.1). A claim of another type, or a duplicate claim,
/// makes the token invalid.
#[derive(Deserialize)]
struct Claims {
    exp: Option<f64>,
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<Audience>,
    sub: Option<Subject>,
}

/// The `aud` claim: one audience or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Any(Vec<String>),
}

/// Some issuers write a user id as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Subject {
    Text(String),
    Number(i64),
}

/// A JWK set (RFC 7517).
#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Map<String, Value>>,
}

impl JwtVerifier {
    /// Verifies HS256 with a shared secret.
    pub(super) fn with_secret(secret: &[u8]) -> Self {
        Self::with_keys(vec![Key {
            id: None,
            fingerprint: fingerprint("HS256", &[secret]),
            material: KeyMaterial::Hs256(hmac::Key::new(hmac::HMAC_SHA256, secret)),
        }])
    }

    /// Verifies EdDSA, ES256 and RS256 with the keys of a JWK set (RFC 7517). Keys of other kinds are
    /// skipped.
    pub(super) fn with_jwks(json: &[u8]) -> Result<Self, JwksError> {
        let jwks: Jwks = serde_json::from_slice(json)?;
        let keys: Vec<_> = jwks.keys.iter().filter_map(parse_jwk).collect();
        if keys.is_empty() {
            return Err(JwksError::NoKey);
        }
        Ok(Self::with_keys(keys))
    }

    fn with_keys(keys: Vec<Key>) -> Self {
        JwtVerifier {
            keys,
            issuer: None,
            audience: None,
            max_clock_skew: Duration::ZERO,
        }
    }

    /// Sets the required issuer and audience, and the tolerated clock skew.
    pub(super) fn requiring(
        mut self,
        issuer: Option<String>,
        audience: Option<String>,
        max_clock_skew: Duration,
    ) -> Self {
        self.issuer = issuer;
        self.audience = audience;
        self.max_clock_skew = max_clock_skew;
        self
    }

    /// Checks the signature and the claims of a token.
    pub(super) fn verify(&self, token: &str, now: SystemTime) -> Result<VerifiedJwt, Rejection> {
        let (signed, signature) = token.rsplit_once('.').ok_or(Rejection::InvalidJwt)?;
        let (header, claims) = signed.split_once('.').ok_or(Rejection::InvalidJwt)?;
        let header: Header = decode_json(header)?;
        let signature = decode(signature)?;
        // An extension that must be understood, and none is.
        if header.crit.is_some() {
            return Err(Rejection::InvalidJwt);
        }
        let is_signed_by = |key: &Key| {
            key.material.algorithm() == header.alg
                && (key.id.is_none() || header.kid.is_none() || key.id == header.kid)
                && key.material.verifies(signed.as_bytes(), &signature)
        };
        let key = self.keys.iter().find(|key| is_signed_by(key));
        let key = key.ok_or(Rejection::InvalidJwt)?.fingerprint;
        self.check_claims(key, &decode_json(claims)?, now)
    }

    /// Whether tokens of this key are verified.
    pub(super) fn has_key(&self, fingerprint: &KeyFingerprint) -> bool {
        self.keys.iter().any(|key| key.fingerprint == *fingerprint)
    }

    fn check_claims(
        &self,
        key: KeyFingerprint,
        claims: &Claims,
        now: SystemTime,
    ) -> Result<VerifiedJwt, Rejection> {
        let expires = numeric_date(claims.exp.ok_or(Rejection::InvalidJwt)?)?;
        let accepted_until = expires
            .checked_add(self.max_clock_skew)
            .ok_or(Rejection::InvalidJwt)?;
        if accepted_until <= now {
            return Err(Rejection::ExpiredJwt);
        }
        let valid_from = claims.nbf.map(numeric_date).transpose()?;
        if valid_from.is_some_and(|from| from > now && from > now + self.max_clock_skew) {
            return Err(Rejection::JwtNotYetValid);
        }
        if self.issuer.is_some() && claims.iss != self.issuer {
            return Err(Rejection::JwtIssuer);
        }
        if let Some(audience) = &self.audience {
            let is_for_us = match &claims.aud {
                Some(Audience::Any(all)) => all.contains(audience),
                Some(Audience::One(one)) => one == audience,
                None => false,
            };
            if !is_for_us {
                return Err(Rejection::JwtAudience);
            }
        }
        Ok(VerifiedJwt {
            subject: claims.sub.as_ref().map(|subject| match subject {
                Subject::Text(text) => text.clone(),
                Subject::Number(number) => number.to_string(),
            }),
            accepted_until,
            key,
        })
    }
}

impl KeyMaterial {
    fn algorithm(&self) -> &'static str {
        match self {
            KeyMaterial::Hs256(_) => "HS256",
            KeyMaterial::Es256(_) => "ES256",
            KeyMaterial::EdDsa(_) => "EdDSA",
            KeyMaterial::Rs256 { .. } => "RS256",
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            KeyMaterial::Hs256(key) => hmac::verify(key, message, signature),
            KeyMaterial::Es256(point) => {
                signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
            }
            KeyMaterial::EdDsa(key) => signature::UnparsedPublicKey::new(&signature::ED25519, key)
                .verify(message, signature),
            KeyMaterial::Rs256 { modulus, exponent } => signature::RsaPublicKeyComponents {
                n: modulus,
                e: exponent,
            }
            .verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature),
        };
        verified.is_ok()
    }
}

/// Parses one key of a set. Returns `None` if it cannot verify any of the accepted algorithms.
fn parse_jwk(jwk: &Map<String, Value>) -> Option<Key> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let coordinate = |name: &str| bytes(name).filter(|bytes| bytes.len() == COORDINATE_BYTES);
    let material = match (text("kty")?, text("crv")) {
        ("OKP", Some("Ed25519")) => KeyMaterial::EdDsa(coordinate("x")?),
        ("EC", Some("P-256")) => {
            // The uncompressed form of a point (SEC 1, section 2.3.3).
            let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
            KeyMaterial::Es256(point)
        }
        ("RSA", _) => {
            let is_long = |modulus: &Vec<u8>| {
                let has_all_bits = || modulus.first().is_some_and(|first| *first >= 0x80);
                modulus.len() > MIN_RSA_BYTES || (modulus.len() == MIN_RSA_BYTES && has_all_bits())
            };
            KeyMaterial::Rs256 {
                modulus: bytes("n").filter(is_long)?,
                exponent: bytes("e")?,
            }
        }
        _ => return None,
    };
    if text("alg").is_some_and(|named| named != material.algorithm()) {
        return None;
    }
    let fingerprint = match &material {
        KeyMaterial::Hs256(_) => return None,
        KeyMaterial::Es256(key) | KeyMaterial::EdDsa(key) => {
            fingerprint(material.algorithm(), &[key])
        }
        KeyMaterial::Rs256 { modulus, exponent } => {
            fingerprint(material.algorithm(), &[modulus, exponent])
        }
    };
    Some(Key {
        id: text("kid").map(str::to_owned),
        fingerprint,
        material,
    })
}

fn fingerprint(algorithm: &str, parts: &[&[u8]]) -> KeyFingerprint {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [&[algorithm.as_bytes()], parts].concat() {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut fingerprint = KeyFingerprint::default();
    fingerprint.copy_from_slice(context.finish().as_ref());
    fingerprint
}

/// Converts a `NumericDate` (RFC 7519, section 2). Times before 1970 are long past.
fn numeric_date(seconds: f64) -> Result<SystemTime, Rejection> {
    let since = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    let date = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    date.ok_or(Rejection::InvalidJwt)
}

fn decode(part: &str) -> Result<Vec<u8>, Rejection> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Rejection::InvalidJwt)
}

fn decode_json<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, Rejection> {
    serde_json::from_slice(&decode(part)?).map_err(|_| Rejection::InvalidJwt)
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
    };
    use serde_json::json;

    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const NOW: u64 = 1_800_000_000;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(NOW)
    }

    fn signed_part(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}", part(header), part(claims))
    }

    fn token(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
        let signed = signed_part(header, claims);
        let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn hs256(claims: &Value) -> String {
        token(&json!({"alg": "HS256", "typ": "JWT"}), claims, |message| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
            hmac::sign(&key, message).as_ref().to_vec()
        })
    }

    fn verifier() -> JwtVerifier {
        let skew = Duration::from_secs(30);
        let (issuer, audience) = (Some("us".to_owned()), Some("outpost".to_owned()));
        JwtVerifier::with_secret(SECRET).requiring(issuer, audience, skew)
    }

    fn claims(changed: &Value) -> Value {
        let mut claims = json!({"exp": NOW + 60, "iss": "us", "aud": "outpost", "sub": "ci"});
        let target = claims.as_object_mut().unwrap();
        for (name, value) in changed.as_object().unwrap() {
            if value.is_null() {
                target.remove(name);
            } else {
                target.insert(name.clone(), value.clone());
            }
        }
        claims
    }

    #[test]
    fn valid_token_names_its_subject_and_end() {
        let verified = verifier()
            .verify(&hs256(&claims(&json!({}))), now())
            .unwrap();
        assert_eq!(verified.subject.as_deref(), Some("ci"));
        assert_eq!(verified.accepted_until, now() + Duration::from_secs(90));
    }

    #[test]
    fn claims_are_checked_with_the_skew() {
        for (changed, expected) in [
            (json!({"exp": NOW - 29}), None),
            (json!({"exp": NOW - 30}), Some(Rejection::ExpiredJwt)),
            (json!({"exp": null}), Some(Rejection::InvalidJwt)),
            (json!({"exp": "9999999999"}), Some(Rejection::InvalidJwt)),
            (json!({"exp": -1}), Some(Rejection::ExpiredJwt)),
            (json!({"exp": 1e300}), Some(Rejection::InvalidJwt)),
            (json!({"nbf": NOW + 30}), None),
            (json!({"nbf": NOW + 31}), Some(Rejection::JwtNotYetValid)),
            (json!({"nbf": "soon"}), Some(Rejection::InvalidJwt)),
            (json!({"iss": "them"}), Some(Rejection::JwtIssuer)),
            (json!({"iss": null}), Some(Rejection::JwtIssuer)),
            (json!({"aud": ["other", "outpost"]}), None),
            (json!({"aud": ["other"]}), Some(Rejection::JwtAudience)),
            (json!({"aud": "other"}), Some(Rejection::JwtAudience)),
            (json!({"aud": null}), Some(Rejection::JwtAudience)),
            (json!({"iss": ["us"]}), Some(Rejection::InvalidJwt)),
            (json!({"aud": 1}), Some(Rejection::InvalidJwt)),
            (json!({"sub": 7}), None),
            (json!({"sub": {}}), Some(Rejection::InvalidJwt)),
        ] {
            let found = verifier().verify(&hs256(&claims(&changed)), now());
            assert_eq!(found.err(), expected, "{changed}");
        }
    }

    #[test]
    fn claim_that_occurs_twice_makes_the_token_invalid() {
        let claims = format!(
            r#"{{"iss":"us","aud":"outpost","exp":{},"exp":{}}}"#,
            NOW + 60,
            NOW + 90
        );
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
        let rejected = verifier().verify(&format!("{signed}.{signature}"), now());
        assert_eq!(rejected, Err(Rejection::InvalidJwt));
    }

    #[test]
    fn token_cannot_choose_its_algorithm() {
        let good = claims(&json!({}));
        let none = token(&json!({"alg": "none"}), &good, |_| Vec::new());
        let renamed = hs256(&good).replacen(
            &URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "typ": "JWT"}).to_string()),
            &URL_SAFE_NO_PAD.encode(json!({"alg": "HS512", "typ": "JWT"}).to_string()),
            1,
        );
        for token in [
            none,
            renamed,
            "a.b".to_owned(),
            String::new(),
            "a.b.c".to_owned(),
        ] {
            let rejected = verifier().verify(&token, now()).unwrap_err();
            assert_eq!(rejected, Rejection::InvalidJwt, "{token}");
        }
        // The public key as the shared secret of HS256.
        let jwks = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(SECRET)}]});
        let verifier = JwtVerifier::with_jwks(jwks.to_string().as_bytes()).unwrap();
        let rejected = verifier.verify(&hs256(&good), now()).unwrap_err();
        assert_eq!(rejected, Rejection::InvalidJwt);
    }

    #[test]
    fn changed_claims_and_critical_extensions_are_rejected() {
        let good = hs256(&claims(&json!({})));
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode(claims(&json!({"sub": "root"})).to_string());
        let forged = format!("{header}.{forged}.{signature}");
        let critical = token(
            &json!({"alg": "HS256", "crit": ["b64"], "b64": false}),
            &claims(&json!({})),
            |message| {
                let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
                hmac::sign(&key, message).as_ref().to_vec()
            },
        );
        for token in [forged, critical] {
            let rejected = verifier().verify(&token, now()).unwrap_err();
            assert_eq!(rejected, Rejection::InvalidJwt);
        }
    }

    #[test]
    fn public_keys_verify_their_own_algorithm() {
        let random = SystemRandom::new();
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ed25519 = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let p256 = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let point = p256.public_key().as_ref();
        let jwks = json!({"keys": [
            {"kty": "oct", "k": "c2VjcmV0"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig",
             "x": URL_SAFE_NO_PAD.encode(ed25519.public_key())},
            {"kty": "EC", "crv": "P-256", "alg": "ES256",
             "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..])},
        ]});
        let verifier = JwtVerifier::with_jwks(jwks.to_string().as_bytes()).unwrap();
        let claims = json!({"exp": NOW + 1});
        let by_ed25519 = |message: &[u8]| ed25519.sign(message).as_ref().to_vec();
        let by_p256 = |message: &[u8]| p256.sign(&random, message).unwrap().as_ref().to_vec();
        let verify = |token: String| verifier.verify(&token, now());
        verify(token(
            &json!({"alg": "EdDSA", "kid": "one"}),
            &claims,
            by_ed25519,
        ))
        .unwrap();
        verify(token(&json!({"alg": "EdDSA"}), &claims, by_ed25519)).unwrap();
        verify(token(&json!({"alg": "ES256"}), &claims, by_p256)).unwrap();
        verify(token(
            &json!({"alg": "EdDSA", "kid": "two"}),
            &claims,
            by_ed25519,
        ))
        .unwrap_err();
        verify(token(&json!({"alg": "ES256"}), &claims, by_ed25519)).unwrap_err();
    }

    #[test]
    fn set_without_a_usable_key_is_an_error() {
        for json in [
            json!({"keys": []}),
            json!({"keys": [{"kty": "oct", "k": "AA"}]}),
            json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}),
            json!({"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}),
            json!({"keys": [{"kty": "RSA", "n": "_w", "e": "AQAB"}]}),
        ] {
            let error = JwtVerifier::with_jwks(json.to_string().as_bytes()).unwrap_err();
            assert!(matches!(error, JwksError::NoKey), "{error}");
        }
        JwtVerifier::with_jwks(b"{}").unwrap_err();
    }
}

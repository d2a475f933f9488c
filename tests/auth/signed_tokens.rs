//! Tests signed tokens (JWT), with a shared secret and with public keys.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outpost_testkit::deadline::expect_soon;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::secret_file;
use super::tls_server::{TlsServer, rejected};

pub(super) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock after 1970").as_secs()
}

/// Signs claims with HS256.
pub(super) fn jwt(claims: &Value) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    signed("HS256", claims, |message| {
        ring::hmac::sign(&key, message).as_ref().to_vec()
    })
}

fn signed(algorithm: &str, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({"alg": algorithm, "typ": "JWT"});
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = sign(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test]
async fn claims_are_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = secret_file(dir.path(), "secret", SECRET);
    let file = file.to_str().expect("a path");
    let auth = [
        "--ws-auth",
        "signed-bearer-token",
        "--ws-shared-secret-file",
        file,
    ];
    let claims = ["--ws-issuer", "us", "--ws-audience", "outpost"];
    let host = TlsServer::start(&[&auth[..], &claims].concat()).await;
    let good = json!({"exp": now() + 600, "iss": "us", "aud": ["outpost"], "sub": "ci"});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        jwt(&claims)
    };
    for (token, text) in [
        ("x.y.z".to_owned(), "invalid websocket jwt"),
        (with("exp", Value::Null), "invalid websocket jwt"),
        (
            signed("none", &good, |_| Vec::new()),
            "invalid websocket jwt",
        ),
        (with("exp", json!(now() - 40)), "expired websocket jwt"),
        (
            with("nbf", json!(now() + 600)),
            "websocket jwt is not valid yet",
        ),
        (with("iss", json!("them")), "websocket jwt issuer mismatch"),
        (
            with("aud", json!("other")),
            "websocket jwt audience mismatch",
        ),
    ] {
        assert_eq!(host.upgrade_with(&token).await, rejected(text));
    }
    for accepted in [
        jwt(&good),
        with("aud", json!("outpost")),
        // The default skew is 30 s.
        with("exp", json!(now() - 10)),
        with("nbf", json!(now() + 10)),
    ] {
        assert_eq!(host.upgrade_with(&accepted).await.0, 101);
    }
    host.client(&jwt(&good)).await.check_alive().await;
}

/// A key of each public-key algorithm.
struct Keys {
    ed25519: Ed25519KeyPair,
    p256: EcdsaKeyPair,
    rsa: RsaKeyPair,
}

impl Keys {
    fn new(dir: &Path) -> Self {
        let random = SystemRandom::new();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let p256 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let p256 = EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random);
        Keys {
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).expect("a key"),
            p256: p256.expect("a key"),
            rsa: rsa_key(dir),
        }
    }

    /// The public keys as a JWK set.
    fn jwks(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = self.p256.public_key().as_ref();
        let rsa = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let keys = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "x": text(self.ed25519.public_key().as_ref())},
            {"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])},
            {"kty": "RSA", "n": text(&rsa.n), "e": text(&rsa.e)},
        ]});
        keys.to_string()
    }

    /// A token signed by each key.
    fn tokens(&self, claims: &Value) -> [String; 3] {
        let random = SystemRandom::new();
        [
            signed("EdDSA", claims, |message| {
                self.ed25519.sign(message).as_ref().to_vec()
            }),
            signed("ES256", claims, |message| {
                let signature = self.p256.sign(&random, message);
                signature.expect("a signature").as_ref().to_vec()
            }),
            signed("RS256", claims, |message| {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let made = self
                    .rsa
                    .sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                made.expect("a signature");
                signature
            }),
        ]
    }
}

/// `ring` cannot generate RSA keys.
fn rsa_key(dir: &Path) -> RsaKeyPair {
    let file = dir.join("rsa");
    let made = Command::new("ssh-keygen")
        .args([
            "-q", "-t", "rsa", "-b", "2048", "-m", "PKCS8", "-N", "", "-f",
        ])
        .arg(&file)
        .status();
    assert!(made.expect("ssh-keygen runs").success());
    let key = PrivatePkcs8KeyDer::from_pem_file(&file).expect("a key");
    fs::remove_file(&file).expect("the key");
    RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).expect("a key")
}

#[tokio::test]
async fn tokens_are_verified_with_public_keys_that_may_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (Keys::new(dir.path()), Keys::new(dir.path()));
    let file = dir.path().join("jwks.json");
    // Public keys are no secret.
    fs::write(&file, first.jwks()).expect("the keys");
    let path = file.to_str().expect("a path");
    let host = TlsServer::start(&["--ws-auth", "signed-bearer-token", "--jwks-file", path]).await;
    let claims = json!({"exp": now() + 600, "sub": "ci"});
    for token in first.tokens(&claims) {
        host.client(&token).await.check_alive().await;
    }
    for token in second.tokens(&claims) {
        let refused = host.upgrade_with(&token).await;
        assert_eq!(refused, rejected("invalid websocket jwt"));
    }
    let [before, ..] = first.tokens(&claims);
    fs::write(&file, second.jwks()).expect("the keys");
    let replaced = async {
        while host.upgrade_with(&before).await.0 != 401 {
            tokio::task::yield_now().await;
        }
    };
    expect_soon("the new keys", replaced).await;
    let [after, ..] = second.tokens(&claims);
    assert_eq!(host.upgrade_with(&after).await.0, 101);
}

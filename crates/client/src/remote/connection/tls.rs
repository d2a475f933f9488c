//! TLS connections to a server: trusted certificates, a pinned one, and the client's own.

use std::{fmt, fs, io, path::PathBuf, str::FromStr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    client::WebPkiServerVerifier,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName,
        pem::{self, PemObject as _},
    },
};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    certificate_verifiers::{PinnedCertificate, TrustedCertificate},
    dial_error::DialError,
    tls_errors::rejected_certificate,
};
use crate::remote::token::{SecretError, read_private_file};

/// Certificates to trust for `wss://`, and the client's own. The default trusts the system's
/// certificate authorities.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// A PEM file with certificate authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The only certificate to accept, whatever its issuer and its name are.
    pub fingerprint: Option<Fingerprint>,
    /// PEM files with the certificate chain and the private key of the client. Only its owner may
    /// have access to the key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// Why [`TlsOptions`] can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file with certificates can't be read.
    #[error("cannot read certificates from {}: {source}", .path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of the private key can't be used.
    #[error(transparent)]
    Key(#[from] SecretError),
    /// The certificate and the key of the client can't be used.
    #[error("cannot use the client certificate {}: {source}", .path.display())]
    Identity {
        /// The file of the certificate.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system's certificate authorities can't be loaded.
    #[error("cannot load the system's certificates: {0}")]
    System(io::Error),
}

/// Configuration of TLS connections, made from [`TlsOptions`].
#[derive(Clone)]
pub struct TlsConfig {
    client: Arc<ClientConfig>,
}

impl TlsConfig {
    /// Reads the files of the options.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::System(io::Error::other(error)))?;
        let builder = match &options.fingerprint {
            Some(fingerprint) => {
                let fingerprint = fingerprint.clone();
                let verifier = PinnedCertificate {
                    fingerprint,
                    provider: Arc::clone(&provider),
                };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
            None => {
                let roots = Arc::new(roots(options)?);
                let provider = Arc::clone(&provider);
                let inner = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                // Fails only without any root.
                let verifier = TrustedCertificate { inner: inner.ok() };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let client = match &options.client_certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key_file)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_slice(&read_private_file(key_file)?);
                let key = key.map_err(|_| SecretError::Content {
                    path: key_file.clone(),
                    expected: "a private key in PEM format",
                })?;
                let client = builder.with_client_auth_cert(chain, key);
                client.map_err(|error| TlsError::Identity {
                    path: certificate.clone(),
                    source: io::Error::other(error),
                })?
            }
        };
        Ok(TlsConfig {
            client: Arc::new(client),
        })
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").finish_non_exhaustive()
    }
}

/// Returns the system's certificate authorities and those of the options.
fn roots(options: &TlsOptions) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    let Some(path) = &options.ca_file else {
        return match found.errors.into_iter().next() {
            Some(error) if usable == 0 => Err(TlsError::System(io::Error::other(error))),
            _ => Ok(roots),
        };
    };
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| TlsError::Certificates {
            path: path.clone(),
            source: io::Error::other(error),
        })?;
    }
    Ok(roots)
}

/// Reads a PEM file with at least one certificate.
fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Certificates {
        path: path.clone(),
        source,
    };
    let content = fs::read(path).map_err(failed)?;
    let certificates: Result<Vec<_>, pem::Error> =
        CertificateDer::pem_slice_iter(&content).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(failed(io::Error::other("it has none in PEM format")))
        }
        certificates => certificates.map_err(|error| failed(io::Error::other(error))),
    }
}

/// The SHA-256 hash of a certificate in DER encoding, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A fingerprint is not `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected sha256: and 64 hexadecimal digits")]
pub struct InvalidFingerprint;

impl Fingerprint {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    /// Accepts both cases, and colons between the digits, as openssl prints them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, digits) = text.split_once(':').ok_or(InvalidFingerprint)?;
        if !algorithm.eq_ignore_ascii_case("sha256") {
            return Err(InvalidFingerprint);
        }
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(InvalidFingerprint);
        };
        let bytes = pairs.iter().map(|pair| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            u8::try_from(value).ok()
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Fingerprint).ok_or(InvalidFingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Performs the TLS handshake with `host`. Without a `config`, trusts the system's certificates.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    config: Option<TlsConfig>,
) -> Result<TlsStream<TcpStream>, DialError> {
    let config = match config {
        Some(config) => config,
        None => TlsConfig::new(&TlsOptions::default())
            .map_err(|error| DialError::Tls(io::Error::other(error)))?,
    };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| DialError::Tls(io::Error::other(error)))?;
    let connector = TlsConnector::from(config.client);
    let connected = connector.connect(name, stream).await;
    connected.map_err(|error| rejected_certificate(&error).unwrap_or(DialError::Tls(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_parsed_in_the_usual_spellings() {
        let fingerprint = Fingerprint::of(&CertificateDer::from(&b"abc"[..]));
        let shown = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fingerprint.to_string(), shown);
        assert_eq!(shown.parse(), Ok(fingerprint.clone()));
        let upper = shown.to_uppercase();
        let pairs: Vec<_> = upper.as_bytes()[7..]
            .chunks(2)
            .map(|pair| str::from_utf8(pair).unwrap())
            .collect();
        assert_eq!(
            format!("sha256:{}", pairs.join(":")).parse(),
            Ok(fingerprint)
        );
        let longer = format!("{shown}00");
        for wrong in ["", "sha256:", &shown[7..], &shown[..70], &longer, "sha1:aa"] {
            assert_eq!(
                wrong.parse::<Fingerprint>(),
                Err(InvalidFingerprint),
                "{wrong}"
            );
        }
    }
}

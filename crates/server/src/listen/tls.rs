//! TLS of `wss://` listeners.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::RwLock;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::auth::{SecretFileError, read_secret_file, read_trusted_file};

/// The files of a TLS server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, in PEM encoding, the server's own first.
    pub certificate: PathBuf,
    /// The private key, in PEM encoding.
    pub key: PathBuf,
    /// Certificate authorities of clients, in PEM encoding.
    pub client_ca: Option<PathBuf>,
    /// Whether a client may come without a certificate, because it has a token.
    pub client_certificate_is_optional: bool,
}

/// The TLS configuration of all `wss://` listeners. It is replaced when its files change.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    /// Read by every handshake.
    config: RwLock<Arc<ServerConfig>>,
}

/// Error of loading a TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {os}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The OS error.
        os: io::Error,
    },
    /// The key or the file of authorities cannot be read, or other users have access to it.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// A file holds no certificate or key.
    #[error("cannot parse {path}: {cause}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: rustls::pki_types::pem::Error,
    },
    /// A file holds no certificates.
    #[error("{0} contains no certificate")]
    NoCertificate(PathBuf),
    /// Certificate and key do not belong together, or cannot be used.
    #[error("cannot use {certificate} with {key}: {cause}")]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// The reason.
        cause: rustls::Error,
    },
    /// The certificate authorities of clients cannot be used.
    #[error("cannot use {path} to verify clients: {cause}")]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
}

impl Tls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let config = RwLock::new(server_config(&files)?);
        Ok(Tls { files, config })
    }

    /// The files that are read again when they change.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = &self.files;
        [
            Some(&files.certificate),
            Some(&files.key),
            files.client_ca.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
    }

    /// Reads the files again, for new connections. If one cannot be used, everything stays as it was.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        *self.config.write() = server_config(&self.files)?;
        Ok(())
    }

    /// Returns the acceptor for one handshake.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read()))
    }

    /// Whether clients are asked for certificates.
    #[must_use]
    pub fn verifies_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }
}

/// Returns when the first certificate of a PEM file is valid, which is the server's own.
pub fn certificate_validity(path: &Path) -> Result<Range<SystemTime>, TlsError> {
    let certificates = parse_certificates(path, &read_certificate(path)?)?;
    let unusable = || TlsError::NoCertificate(path.to_owned());
    let own = certificates.first().ok_or_else(unusable)?;
    let (_, parsed) = X509Certificate::from_der(own).map_err(|_| unusable())?;
    let validity = parsed.validity();
    let [start, end] = [validity.not_before, validity.not_after].map(|time| {
        let seconds = time.timestamp().try_into().unwrap_or_default();
        UNIX_EPOCH + Duration::from_secs(seconds)
    });
    Ok(start..end)
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(default_provider());
    let pair_error = |cause| TlsError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        cause,
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(pair_error)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let unusable = |cause: String| TlsError::ClientCa {
                path: path.clone(),
                cause,
            };
            let mut roots = RootCertStore::empty();
            for certificate in parse_certificates(path, &read_trusted_file(path)?)? {
                let added = roots.add(certificate);
                added.map_err(|error| unusable(error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if files.client_certificate_is_optional {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            let verifier = verifier.build();
            builder
                .with_client_cert_verifier(verifier.map_err(|error| unusable(error.to_string()))?)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&read_secret_file(&files.key)?);
    let key = key.map_err(|cause| TlsError::Pem {
        path: files.key.clone(),
        cause,
    })?;
    let certificates =
        parse_certificates(&files.certificate, &read_certificate(&files.certificate)?)?;
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(pair_error)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_certificate(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|os| TlsError::Read {
        path: path.to_owned(),
        os,
    })
}

fn parse_certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|cause| TlsError::Pem {
        path: path.to_owned(),
        cause,
    })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate(path.to_owned()));
    }
    Ok(certificates)
}

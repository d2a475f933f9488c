//! Verifiers of a server's certificate: by trusted authorities, or by its fingerprint.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, OtherError, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::tls::Fingerprint;

/// Accepts certificates of trusted authorities, and tells the fingerprint of others.
#[derive(Debug)]
pub(super) struct TrustedCertificate {
    /// None without any trusted authority.
    pub(super) inner: Option<Arc<WebPkiServerVerifier>>,
}

/// The server's certificate is not from a trusted authority.
#[derive(Debug, thiserror::Error)]
#[error("the server's certificate {found} is not from a trusted authority")]
pub(super) struct UntrustedCertificate {
    pub(super) found: Fingerprint,
}

impl TrustedCertificate {
    fn inner(&self) -> Result<&WebPkiServerVerifier, rustls::Error> {
        let inner = self.inner.as_deref();
        inner.ok_or(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer,
        ))
    }
}

impl ServerCertVerifier for TrustedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.inner().and_then(|inner| {
            inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        });
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                let found = Fingerprint::of(end_entity);
                rustls::Error::Other(OtherError(Arc::new(UntrustedCertificate { found })))
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner()?
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner()?
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Accepts one certificate only. The peer still proves that it has the key.
#[derive(Debug)]
pub(super) struct PinnedCertificate {
    pub(super) fingerprint: Fingerprint,
    pub(super) provider: Arc<CryptoProvider>,
}

/// The server has another certificate than the pinned one.
#[derive(Debug, thiserror::Error)]
#[error("the server's certificate is {found}")]
pub(super) struct WrongCertificate {
    pub(super) found: Fingerprint,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(end_entity);
        if found == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = OtherError(Arc::new(WrongCertificate { found }));
        Err(rustls::Error::Other(wrong))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

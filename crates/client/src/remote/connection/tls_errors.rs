//! Explains errors of TLS handshakes.

use std::io;

use rustls::{CertificateError, OtherError};

use super::{
    certificate_verifiers::{UntrustedCertificate, WrongCertificate},
    dial_error::DialError,
};

/// Returns the error about a certificate that is not the pinned one, or not trusted.
pub(super) fn rejected_certificate(error: &io::Error) -> Option<DialError> {
    let rustls::Error::Other(OtherError(error)) = rustls_error(error)? else {
        return None;
    };
    if let Some(WrongCertificate { found }) = error.downcast_ref() {
        let found = found.clone();
        return Some(DialError::WrongCertificate { found });
    }
    let UntrustedCertificate { found } = error.downcast_ref()?;
    let found = found.clone();
    Some(DialError::UntrustedCertificate { found })
}

/// Returns the error of TLS in an error of a stream.
pub(super) fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Says why a handshake failed, and what to do about it.
pub(super) fn explained(error: &io::Error) -> String {
    use CertificateError::{Expired, ExpiredContext, NotValidForNameContext, NotValidYetContext};
    match rustls_error(error) {
        Some(rustls::Error::InvalidCertificate(certificate)) => match certificate {
            Expired | ExpiredContext { .. } => {
                "the server's certificate has expired; its operator has to renew it".to_owned()
            }
            NotValidYetContext { .. } => {
                "the server's certificate is not valid yet; check the clocks of both hosts".to_owned()
            }
            NotValidForNameContext {
                expected,
                presented,
            } => {
                let presented = match &presented[..] {
                    [] => "no name".to_owned(),
                    names => names.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
                };
                let expected = expected.to_str();
                format!(
                    "the server's certificate is for {presented} and not for {expected}; connect by a name that it \
                     has, or pin its fingerprint"
                )
            }
            other => format!("cannot verify the server's certificate: {other}"),
        },
        Some(rustls::Error::InvalidMessage(_)) => {
            "the server does not speak TLS at this port; check the port, or use ws:// for a server on this host"
                .to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => format!(
            "the server refused the handshake ({alert:?}); it may want a client certificate that it trusts"
        ),
        _ if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server ended the handshake; check that it speaks TLS at this port".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns the name in `DnsName("localhost")` or `IpAddress(127.0.0.1)`, which is how the library shows names.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(name, |inner| inner.trim_matches('"'))
}

//! The principal of a client certificate that TLS has verified.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::{extensions::GeneralName, prelude::*};

/// The name and the end of validity of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    /// Its first subject alternative name that is a URI, a DNS name or an e-mail address, else its common
    /// name.
    pub(crate) name: String,
    pub(crate) valid_until: SystemTime,
}

impl ClientCertificate {
    /// Parses a certificate in DER encoding. Returns `None` if it has no name.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let alternative = certificate.subject_alternative_name().ok()?;
        let names = alternative
            .iter()
            .flat_map(|names| &names.value.general_names);
        let name = names
            .filter_map(|name| match name {
                GeneralName::URI(name) | GeneralName::DNSName(name) => Some(*name),
                GeneralName::RFC822Name(name) => Some(*name),
                _ => None,
            })
            .next()
            .or_else(|| {
                certificate
                    .subject()
                    .iter_common_name()
                    .next()?
                    .as_str()
                    .ok()
            })
            .filter(|name| !name.is_empty())?;
        let seconds = certificate.validity().not_after.timestamp();
        Some(ClientCertificate {
            name: name.to_owned(),
            valid_until: UNIX_EPOCH + Duration::from_secs(seconds.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn name(alternative: Vec<SanType>, common: Option<&str>) -> Option<String> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = alternative;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(common) = common {
            params.distinguished_name.push(DnType::CommonName, common);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let parsed = ClientCertificate::parse(certificate.der())?;
        assert!(parsed.valid_until > SystemTime::now());
        Some(parsed.name)
    }

    #[test]
    fn first_alternative_name_wins_over_the_common_name() {
        let address = SanType::IpAddress([192, 0, 2, 1].into());
        let uri = SanType::URI("spiffe://example/ci".try_into().unwrap());
        let dns = SanType::DnsName("ci.example".try_into().unwrap());
        let both = vec![address.clone(), uri, dns];
        assert_eq!(name(both, Some("other")).unwrap(), "spiffe://example/ci");
        assert_eq!(name(vec![address], Some("ci")).unwrap(), "ci");
        assert_eq!(name(Vec::new(), None), None);
        assert_eq!(ClientCertificate::parse(b"x"), None);
    }
}

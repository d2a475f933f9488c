//! TLS configuration.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Trusts the certificates of the system. It is no error if there are none, because requests without
/// TLS still work. The crypto provider is passed explicitly, so that the program's default stays
/// unchanged.
pub(crate) fn system() -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

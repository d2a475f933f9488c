//! The certificate of `wss://` listeners: named by the configuration, or self-signed and kept.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use outpost_engine::sandbox::{Access, planning::OwnPath};
use outpost_server::{Tls, TlsFiles};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest, Sha256};

use crate::config::Config;

/// The directory of self-signed certificates, which sandboxed processes must not see.
pub(crate) fn own_path() -> Option<OwnPath> {
    Some(OwnPath {
        access: Access::Deny,
        only_if_present: true,
        ..OwnPath::read_only(directory().ok()?)
    })
}

/// The key of self-signed certificates.
pub(crate) fn own_key() -> Option<PathBuf> {
    Some(self_signed().ok()?.1)
}

/// Loads the certificate, if one is configured. Creates a self-signed one if it is missing.
pub(crate) fn load(config: &Config) -> anyhow::Result<Option<Tls>> {
    let Some(files) = files(config)? else {
        return Ok(None);
    };
    if config.tls_self_signed {
        create_self_signed(&files.certificate, &files.key)?;
    }
    Ok(Some(Tls::load(files)?))
}

/// Returns the files of the configured certificate. Those of a self-signed one may not exist.
pub(crate) fn files(config: &Config) -> anyhow::Result<Option<TlsFiles>> {
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    let client_ca = Some(config.tls_client_ca.clone()).filter(|path| is_set(path));
    let (certificate, key) = match (is_set(&config.tls_cert), is_set(&config.tls_key)) {
        (true, true) if config.tls_self_signed => {
            bail!("--tls-self-signed and --tls-cert are mutually exclusive")
        }
        (true, true) => (config.tls_cert.clone(), config.tls_key.clone()),
        (true, false) => bail!("--tls-cert needs --tls-key"),
        (false, true) => bail!("--tls-key needs --tls-cert"),
        (false, false) if config.tls_self_signed => self_signed()?,
        (false, false) if client_ca.is_some() => {
            bail!("--tls-client-ca needs --tls-cert and --tls-key, or --tls-self-signed")
        }
        (false, false) => return Ok(None),
    };
    Ok(Some(TlsFiles {
        certificate,
        key,
        client_ca,
        client_certificate_is_optional: config.auth_settings().needs_token(),
    }))
}

/// Returns the fingerprint of the certificate that `--tls-self-signed` uses, as clients expect it.
pub(crate) fn self_signed_fingerprint() -> anyhow::Result<String> {
    let (certificate, _) = self_signed()?;
    let pem = fs::read(&certificate).context("cannot read the certificate")?;
    let der = CertificateDer::from_pem_slice(&pem)
        .with_context(|| format!("cannot parse {}; remove it", certificate.display()))?;
    let digest = Sha256::digest(&der);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}

/// Returns the paths of the certificate and the key that are kept for this user.
fn self_signed() -> anyhow::Result<(PathBuf, PathBuf)> {
    let directory = directory()?;
    Ok((directory.join("cert.pem"), directory.join("key.pem")))
}

/// Creates a certificate and a key in one directory, unless both exist.
fn create_self_signed(certificate: &Path, key: &Path) -> anyhow::Result<()> {
    let directory = certificate.parent().unwrap_or(certificate);
    let cannot_create = || format!("cannot create a certificate in {}", directory.display());
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory).with_context(cannot_create)?;
    // Another server that is starting waits for both files, and uses them.
    let lock = File::open(directory).with_context(cannot_create)?;
    lock.lock().with_context(cannot_create)?;
    if certificate.exists() && key.exists() {
        return Ok(());
    }
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if !host.is_empty() && host != "localhost" {
        names.push(host);
    }
    let created = rcgen::generate_simple_self_signed(names).with_context(cannot_create)?;
    // A certificate exists only together with its key, even if this program is killed meanwhile.
    match fs::remove_file(certificate) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(cannot_create);
        }
        _ => {}
    }
    let key_pem = created.signing_key.serialize_pem();
    replace_private_file(key, key_pem.as_bytes()).with_context(cannot_create)?;
    replace_private_file(certificate, created.cert.pem().as_bytes()).with_context(cannot_create)
}

fn directory() -> anyhow::Result<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let state = state.context(
        "cannot store a certificate: neither XDG_STATE_HOME nor HOME is an absolute path; use --tls-cert and --tls-key",
    )?;
    Ok(state.join("outpost/tls"))
}

/// Replaces a file that only this user may read, in one step.
pub(crate) fn replace_private_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    // Root may replace the file of a service's user, which must still be able to read it.
    let owner = fs::metadata(path).map(|old| (old.uid(), old.gid()));
    let written = match owner {
        Ok((uid, gid)) => fchown(&file, Some(uid), Some(gid)),
        Err(_) => Ok(()),
    };
    let written = written
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Creates a certificate, and returns whether it is that of the key.
    fn creates_pair(directory: &Path) -> bool {
        let files = TlsFiles {
            certificate: directory.join("cert.pem"),
            key: directory.join("key.pem"),
            client_ca: None,
            client_certificate_is_optional: false,
        };
        create_self_signed(&files.certificate, &files.key).unwrap();
        Tls::load(files).is_ok()
    }

    #[test]
    fn certificate_fits_its_key_after_concurrent_starts() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("tls");
        let starts = [(); 8].map(|()| {
            let directory = directory.clone();
            thread::spawn(move || creates_pair(&directory))
        });
        for start in starts {
            assert!(start.join().unwrap());
        }
    }

    #[test]
    fn certificate_without_its_key_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        for missing in ["key.pem", "cert.pem"] {
            assert!(creates_pair(home.path()));
            fs::remove_file(home.path().join(missing)).unwrap();
            assert!(creates_pair(home.path()), "{missing}");
        }
    }
}

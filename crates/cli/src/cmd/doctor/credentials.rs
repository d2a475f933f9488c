//! Checks of the server's certificate, and of the files of tokens and keys.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use outpost_server::{
    AuthSettings, Authenticator, Tls, TlsFiles, TokenFile, certificate_validity, read_secret_file,
};

use super::{Check, Finding, State, failed, lacks, works};
use crate::{certificate, config::Config};

/// Time before the expiry of a certificate in which it is reported.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Checks what is configured. Nothing is created.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let certificate = match certificate::files(config) {
        Ok(None) => None,
        Ok(Some(files)) if config.tls_self_signed && !files.key.exists() => {
            let found = "self-signed, created when the server starts";
            Some((State::Absent, found.to_owned(), None))
        }
        Ok(Some(files)) => Some(certificate(&files, SystemTime::now())),
        Err(error) => Some(failed(format!("{error:#}"))),
    };
    findings.extend(certificate.map(|check| Finding::new("certificate", check)));
    let settings = config.auth_settings();
    let files = [
        ("ws_token_file", &settings.ws_token_file),
        ("ws_shared_secret_file", &settings.ws_shared_secret_file),
        ("tokens_file", &settings.tokens_file),
    ];
    for (name, path) in files {
        if let Some(path) = path {
            findings.push(Finding::new(name, secret(name, path, SystemTime::now())));
        }
    }
    let are_usable = findings
        .iter()
        .all(|finding| finding.state != State::Failed);
    // Includes the checks above, whose message is not repeated.
    if are_usable && let Some(check) = authentication(settings) {
        findings.push(Finding::new("authentication", check));
    }
    findings
}

/// Checks that a certificate and its key can be used, and for how long.
fn certificate(files: &TlsFiles, now: SystemTime) -> Check {
    if let Err(error) = Tls::load(files.clone()) {
        return failed(error.to_string());
    }
    let path = files.certificate.display();
    let validity = match certificate_validity(&files.certificate) {
        Ok(validity) => validity,
        Err(error) => return failed(error.to_string()),
    };
    let date = |time| humantime::format_rfc3339_seconds(time).to_string();
    let until = date(validity.end);
    let replace = "replace it; the server reads a new one without a restart";
    if now < validity.start {
        let found = format!("{path} is not valid before {}", date(validity.start));
        return failed(format!("{found}; check the clock of this host"));
    }
    match validity.end.duration_since(now) {
        Err(_) => lacks(
            State::Failed,
            format!("{path} has expired on {until}"),
            replace,
        ),
        Ok(left) if left < SOON => lacks(
            State::Expiring,
            format!("{path} expires on {until}"),
            replace,
        ),
        Ok(_) => works(format!("{path} is valid until {until}")),
    }
}

/// Checks that a secret file can be read, by this user only.
fn secret(name: &str, path: &Path, now: SystemTime) -> Check {
    let bytes = match read_secret_file(path) {
        Ok(bytes) => bytes,
        Err(error) => return failed(error.to_string()),
    };
    let shown = path.display();
    if name != "tokens_file" {
        return works(format!("{shown} can be read by its owner only"));
    }
    match TokenFile::parse(&bytes) {
        Err(error) => failed(format!("cannot parse {shown}: {error}")),
        Ok(file) => {
            let is_expired = |end: SystemTime| end <= now;
            let tokens = file.tokens.iter();
            let expired = tokens.filter(|token| token.expires_at().is_some_and(is_expired));
            let (all, expired) = (file.tokens.len(), expired.count());
            works(format!(
                "{shown} has {all} tokens, {expired} of them expired"
            ))
        }
    }
}

/// Loads all that tokens are checked against. Returns `None` if nothing is configured.
fn authentication(settings: AuthSettings) -> Option<Check> {
    let is_configured = settings.needs_token();
    match Authenticator::load(settings) {
        Err(error) => Some(failed(error.to_string())),
        Ok(_) if is_configured => Some(works("settings are consistent; all files are usable")),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// Writes a certificate that is valid from 2026-01-01 to 2026-12-31, and its key.
    fn files(dir: &Path) -> TlsFiles {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let files = TlsFiles {
            certificate: dir.join("cert.pem"),
            key: dir.join("key.pem"),
            client_ca: None,
            client_certificate_is_optional: false,
        };
        fs::write(&files.certificate, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
        files
    }

    #[test]
    fn expiry_of_a_certificate_is_reported_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        for (now, expected, text) in [
            (
                "2025-12-31T00:00:00Z",
                State::Failed,
                "not valid before 2026-01-01",
            ),
            (
                "2026-12-01T00:00:00Z",
                State::Works,
                "valid until 2026-12-31",
            ),
            (
                "2026-12-20T00:00:00Z",
                State::Expiring,
                "expires on 2026-12-31",
            ),
            (
                "2027-01-01T00:00:00Z",
                State::Failed,
                "has expired on 2026-12-31",
            ),
        ] {
            let (state, found, _) = certificate(&files, humantime::parse_rfc3339(now).unwrap());
            assert_eq!(state, expected, "{now}");
            assert!(found.contains(text), "{found}");
        }
    }

    #[test]
    fn unusable_pair_is_reported_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let check = |files: &TlsFiles| {
            let (state, found, _) = certificate(files, SystemTime::now());
            assert_eq!(state, State::Failed);
            found
        };
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(check(&files).contains("run chmod 600 on it"));
        let other = KeyPair::generate().unwrap();
        fs::write(&files.key, other.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
        let found = check(&files);
        assert!(
            found.contains("cannot use") && found.contains("key.pem"),
            "{found}"
        );
    }
}

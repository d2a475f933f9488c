//! The cost of TLS and of authentication, compared with the same server without them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use super::commands::{p50, run_served};
use super::floods::served;
use crate::bench::client::{Access, Client};
use crate::bench::measurement::{Bound, Measurement, Unit};
use crate::bench::pattern::Pattern;
use crate::bench::programs::flood_command;
use crate::bench::rounds::{alternate, median, millis};
use crate::bench::run::Bench;
use crate::bench::server::{Candidate, Server};

/// Tokens of a team.
const TOKENS: usize = 100;

/// Measures a flood and sequential commands with and without TLS.
pub(super) fn tls(bench: &Bench) -> Result<Vec<Measurement>> {
    let files = tempfile::tempdir()?;
    let config = certificate(files.path())?;
    let path = |name: &str| files.path().join(name).display().to_string();
    let args = [
        "--tls-cert",
        &path("cert.pem"),
        "--tls-key",
        &path("key.pem"),
    ];
    let mut args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let plain = Candidate::Configured(&bench.binary, &args).start()?;
    args.extend(["--listen", "wss://127.0.0.1:0"].map(str::to_owned));
    let encrypted = Candidate::Configured(&bench.binary, &args).start()?;
    let mut plain = Client::connect(plain.url(), None).map(|client| (client, plain))?;
    let access = Access {
        tls: Some(&config),
        token: None,
    };
    let mut encrypted =
        Client::connect_with(encrypted.url(), None, access).map(|client| (client, encrypted))?;

    let bytes = bench.amount(1 << 30, 1 << 27);
    let commands = bench.amount(300, 50);
    let flood = flood_command(Pattern::Raw, bytes)?;
    let argv: Vec<&str> = flood.iter().map(String::as_str).collect();
    let measure = |client: &mut Client| -> Result<[f64; 2]> {
        let [rate] = served(client, &argv, Pattern::Raw, bytes)?;
        Ok([rate, p50(commands, || run_served(client, None))?])
    };
    let sides = [
        Some(Box::new(|| measure(&mut plain.0)) as _),
        Some(Box::new(|| measure(&mut encrypted.0)) as _),
        None,
    ];
    let medians = alternate(bench, bench.rounds, sides)?;
    Ok(medians.lines([
        (
            "flood over TLS beside a plain one",
            Unit::BytesPerSecond,
            vec![Bound::RatioAtLeast(0.5)],
        ),
        (
            "one-shot over TLS beside a plain one, p50",
            Unit::Millis,
            vec![Bound::RatioAtMost(1.1)],
        ),
    ]))
}

/// Measures connections of a client with a token, and of one whose user is looked up, beside those of a
/// client that everybody may be.
pub(super) fn authentication(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(500, 100);
    let files = tempfile::tempdir()?;
    let (file, token) = tokens(bench, &files)?;
    let open = ["--allow-local-users".to_owned()];
    let with_tokens = ["--tokens-file".to_owned(), file];
    let start = |args| Candidate::Configured(&bench.binary, args).start();
    let (open, with_tokens) = (start(&open)?, start(&with_tokens)?);
    let checked = bench.outpost().start()?;
    let connect = |server: &Server, token| {
        let access = Access { tls: None, token };
        let connections = (0..count).map(|_| {
            let begun = Instant::now();
            let mut client = Client::connect_with(server.url(), None, access)?;
            let time = millis(begun.elapsed());
            client.disconnect()?;
            Ok(time)
        });
        Ok(median(&connections.collect::<Result<Vec<_>>>()?))
    };
    let sides = [
        Some(Box::new(|| connect(&open, None).map(|time| [time; 2])) as _),
        Some(Box::new(|| {
            let token = connect(&with_tokens, Some(&*token))?;
            Ok([token, connect(&checked, None)?])
        }) as _),
        None,
    ];
    let medians = alternate(bench, bench.rounds, sides)?;
    let bounds = || vec![Bound::AboveAtMost(0.5)];
    Ok(medians.lines([
        ("connection with a token, p50", Unit::Millis, bounds()),
        ("connection of a local user, p50", Unit::Millis, bounds()),
    ]))
}

/// Creates a certificate and a key for `localhost`. Returns the configuration of a client that trusts it.
fn certificate(dir: &Path) -> Result<Arc<ClientConfig>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(dir.join("cert.pem"), made.cert.pem())?;
    private(&dir.join("key.pem"), &made.signing_key.serialize_pem())?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(made.cert.pem().as_bytes())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Creates a file of tokens. Returns its path and the last token.
fn tokens(bench: &Bench, dir: &TempDir) -> Result<(String, String)> {
    let file = dir.path().join("tokens.toml");
    let others = (1..TOKENS).map(|number| {
        format!("[[tokens]]\nname = \"{number}\"\nsha256 = \"{number:064x}\"\ncreated = 1\n")
    });
    private(&file, &others.collect::<String>())?;
    let output = Command::new(&bench.binary)
        .args(["token", "new", "--name", "bench", "--tokens-file"])
        .arg(&file)
        .output()?;
    ensure!(output.status.success(), "no token was made: {output:?}");
    let token = String::from_utf8(output.stdout)?.trim().to_owned();
    let file = file.to_str().context("a path that is no text")?;
    Ok((file.to_owned(), token))
}

/// Writes a file that only this user may read.
fn private(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text)?;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o600),
    )?)
}

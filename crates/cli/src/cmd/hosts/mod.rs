//! `outpost hosts`: the hosts that `--on` can name.
//!
//! - [`file`]: changes the user's configuration file
//! - [`mod@test`]: connects to a host, and explains a failure

mod file;
mod test;

pub(crate) use test::advice;

use std::{path::PathBuf, process::ExitCode};

use anyhow::ensure;
use outpost_client::{Fingerprint, check_url};
use serde_json::{Map, Value, json};

use crate::{
    args::{AccessArgs, LAUNCHED, SSH, server_or_launched, text},
    config::{self, HostConfig, check_host_name},
    endpoint::{Endpoint, description},
    render::{
        out,
        screen::{Cell, Screen},
    },
    ssh::SshDestination,
};

/// Arguments of `outpost hosts`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost hosts add build wss://build.example:7443 --token-file ~/build.token
  outpost hosts test build
  outpost run --on build -- make")]
pub(crate) struct Hosts {
    #[command(subcommand)]
    subcommand: HostsSubcommand,
}

/// Subcommands of `outpost hosts`.
#[derive(clap::Subcommand, Debug)]
enum HostsSubcommand {
    /// List the hosts of the configuration
    #[command(after_help = "Examples:
  outpost hosts list
  outpost hosts list --json | jq '.[].name'")]
    List(List),
    /// Add a host to the user's outpost.toml
    #[command(after_help = "Examples:
  outpost hosts add build wss://build.example:7443 --token-file ~/build.token
  outpost hosts add lab ssh://me@lab.example --cwd /srv/work")]
    Add(Box<Add>),
    /// Remove a host from the user's outpost.toml
    #[command(after_help = "Examples:
  outpost hosts remove build")]
    Remove(Remove),
    /// Connect to a host, and print its version and the round-trip time
    #[command(after_help = "Examples:
  outpost hosts test build
  outpost hosts test wss://build.example:7443 --token-file ~/build.token")]
    Test(test::Test),
}

/// Arguments of `outpost hosts list`.
#[derive(clap::Args, Debug)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print the names only, one on each line
    #[arg(long, conflicts_with = "json")]
    names: bool,
}

/// Arguments of `outpost hosts add`.
#[derive(clap::Args, Debug)]
struct Add {
    /// The name of the host
    #[arg(value_name = "NAME", value_parser = host_name)]
    name: String,

    /// ws://HOST:PORT, wss://HOST:PORT, unix:///PATH, ssh://[USER@]HOST[:PORT] or stdio:COMMAND
    #[arg(value_name = "URL", value_parser = url)]
    url: String,

    #[command(flatten)]
    access: AccessArgs,

    /// The working directory of commands, and the base of relative paths
    #[arg(long, value_name = "DIR", value_parser = text())]
    cwd: Option<String>,

    /// Replace a host of this name
    #[arg(long)]
    replace: bool,
}

/// Arguments of `outpost hosts remove`.
#[derive(clap::Args, Debug)]
struct Remove {
    /// The name of the host
    #[arg(value_name = "NAME")]
    host: String,
}

fn host_name(text: &str) -> Result<String, &'static str> {
    check_host_name(text).map(|()| text.to_owned())
}

/// Checks a URL, so that a mistake is found before it is used.
fn url(text: &str) -> anyhow::Result<String> {
    ensure!(
        text.contains(':'),
        "expected a URL that begins with ws://, wss://, unix:///, ssh:// or stdio:"
    );
    let url = server_or_launched(text).map_err(anyhow::Error::msg)?;
    if let Some(destination) = url.strip_prefix(SSH) {
        destination.parse::<SshDestination>()?;
    } else if !url.starts_with(LAUNCHED) {
        check_url(&url)?;
    }
    Ok(url)
}

/// Runs the subcommand.
pub(crate) async fn hosts(args: &Hosts) -> anyhow::Result<ExitCode> {
    match &args.subcommand {
        HostsSubcommand::List(args) => list(args)?,
        HostsSubcommand::Add(args) => add(args)?,
        HostsSubcommand::Remove(args) => {
            let file = file::user_file()?;
            file::remove(&file, &args.host)?;
            out::note(&format!("removed {} from {}", args.host, file.display()));
        }
        HostsSubcommand::Test(args) => return test::test(args).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &List) -> anyhow::Result<()> {
    let hosts = config::load_config(None)?.hosts()?;
    if args.json {
        let hosts = hosts.iter().map(|(name, host)| entry(name, host));
        return out::json(&hosts.collect::<anyhow::Result<Vec<_>>>()?);
    }
    if args.names {
        return Ok(out::raw_lines(hosts.into_keys())?);
    }
    if hosts.is_empty() {
        out::note("there are no hosts; `outpost hosts add NAME URL` adds one");
        return Ok(());
    }
    let rows = hosts.iter().map(|(name, host)| {
        let file = |file: &Option<PathBuf>| match file {
            Some(file) => file.display().to_string(),
            None => "-".to_owned(),
        };
        let trust = match host.fingerprint()? {
            Some(fingerprint) => format!("{}…", &fingerprint.to_string()[..15]),
            None => file(&host.ca),
        };
        anyhow::Ok([
            Cell::plain(name),
            Cell::plain(description(&host.url)),
            Cell::plain(file(&host.token_file)),
            Cell::plain(trust),
            Cell::plain(host.cwd.as_deref().unwrap_or("-")),
        ])
    });
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let table = Screen::stdout().table(["NAME", "URL", "TOKEN", "TRUST", "CWD"], &rows);
    Ok(out::raw_lines(table)?)
}

/// A host as JSON.
fn entry(name: &str, host: &HostConfig) -> anyhow::Result<Value> {
    let fingerprint = host.fingerprint()?;
    Ok(json!({
        "name": name,
        "url": description(&host.url),
        "tokenFile": host.token_file,
        "ca": host.ca,
        "fingerprint": fingerprint.as_ref().map(Fingerprint::to_string),
        "clientCert": host.client_cert,
        "clientKey": host.client_key,
        "cwd": host.cwd,
    }))
}

fn add(args: &Add) -> anyhow::Result<()> {
    let absolute = |path: &Option<PathBuf>| -> anyhow::Result<Option<Value>> {
        let path = path.as_ref().map(std::path::absolute).transpose()?;
        Ok(path.map(|path| path.to_string_lossy().into_owned().into()))
    };
    let access = &args.access;
    let fingerprint = access.fingerprint.as_ref();
    let members = [
        ("url", Some(args.url.clone().into())),
        ("token_file", absolute(&access.token_file)?),
        ("ca", absolute(&access.ca)?),
        ("fingerprint", fingerprint.map(|pin| pin.to_string().into())),
        ("client_cert", absolute(&access.client_cert)?),
        ("client_key", absolute(&access.client_key)?),
        ("cwd", args.cwd.clone().map(Value::from)),
    ];
    let members = members.into_iter();
    let members: Vec<(&str, Value)> = members
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    // Checks the files, so that a mistake is found now.
    let table: Map<String, Value> = members
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect();
    let host = HostConfig::parse(&args.name, &Value::Object(table))?;
    Endpoint::of_host(
        &args.name,
        &[(args.name.clone(), host)].into(),
        &AccessArgs::default(),
    )?;
    let file = file::user_file()?;
    file::add(&file, &args.name, &members, args.replace)?;
    out::note(&format!("added {} to {}", args.name, file.display()));
    Ok(())
}

//! `outpost token`: creates, lists and revokes named tokens.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use clap::Subcommand;
use outpost_server::{AccessScope, NamedToken, TokenFile, read_secret_file};
use rustix::fs::OFlags;
use serde_json::json;

use crate::{
    certificate::replace_private_file,
    render::{
        out,
        screen::{Cell, Screen, Style},
    },
    units::{parse_time, span},
};

/// Arguments of `outpost token`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost token new --name ci --expires 30d --tokens-file /etc/outpost/tokens.toml
  outpost token list --tokens-file /etc/outpost/tokens.toml
  outpost token revoke ci --tokens-file /etc/outpost/tokens.toml

A server started with --tokens-file notices a change within seconds: a new token is accepted, and
the connections of a revoked one are closed. Its processes go on for the lease of their session.")]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Create a token and print it; it is not stored and can't be printed again. An expired token with the same
    /// name is replaced
    #[command(after_help = "Examples:
  outpost token new --name ci --expires 30d --tokens-file /etc/outpost/tokens.toml
  outpost token new --name reader --scopes files:read,watch --tokens-file /etc/outpost/tokens.toml")]
    New {
        /// The name of its principal
        #[arg(long)]
        name: String,
        /// Narrows the scopes of its principal to these: exec, files:read, files:write, http, watch, admin
        #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
        scopes: Option<Vec<AccessScope>>,
        /// When it expires, such as 12h or 30d; never unless given
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<Duration>,
        /// The file of the server's tokens, created if it does not exist
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
    /// List the tokens, without the tokens themselves
    #[command(after_help = "Examples:
  outpost token list --tokens-file /etc/outpost/tokens.toml")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The file of the server's tokens
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
    /// Revoke a token
    #[command(after_help = "Examples:
  outpost token revoke ci --tokens-file /etc/outpost/tokens.toml")]
    Revoke {
        /// Its name
        name: String,
        /// The file of the server's tokens
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
}

/// Runs `outpost token`.
pub(crate) fn token(args: Token) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::New {
            name,
            scopes,
            expires,
            tokens_file,
        } => create(&tokens_file, &name, scopes, expires)?,
        Action::List { json, tokens_file } => list(&tokens_file, json)?,
        Action::Revoke { name, tokens_file } => revoke(&tokens_file, &name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn create(
    path: &Path,
    name: &str,
    scopes: Option<Vec<AccessScope>>,
    expires: Option<Duration>,
) -> anyhow::Result<()> {
    let now = SystemTime::now();
    let expires = match expires {
        Some(time) => {
            let expires = now.checked_add(time).filter(|expires| *expires < latest());
            Some(expires.context("--expires is too long: the year 10000 is out of range")?)
        }
        None => None,
    };
    let locked = LockedFile::open(path, true)?;
    let mut file = locked.read()?;
    let token = file.add(name, scopes, now, expires)?;
    locked.replace(&file)?;
    Ok(out::raw_lines([token])?)
}

fn list(path: &Path, json: bool) -> anyhow::Result<()> {
    let file = read(&std::path::absolute(path)?)?;
    let now = SystemTime::now();
    if json {
        let tokens: Vec<_> = file
            .tokens
            .iter()
            .map(|token| {
                json!({
                    "name": token.name,
                    "scopes": token.scopes,
                    "created": token.created,
                    "expires": token.expires,
                    "expired": token.has_expired(now),
                })
            })
            .collect();
        return out::json(&json!({ "tokens": tokens }));
    }
    let scopes = |scopes: &Option<Vec<AccessScope>>| match scopes {
        None => "all of the principal".to_owned(),
        Some(scopes) => {
            let names: Vec<_> = scopes.iter().map(ToString::to_string).collect();
            names.join(",")
        }
    };
    let row = |token: &NamedToken| {
        [
            Cell::plain(&token.name),
            state(token, now),
            Cell::plain(date(token.created)),
            Cell::plain(token.expires.map_or_else(|| "never".to_owned(), date)),
            Cell::plain(scopes(&token.scopes)),
        ]
    };
    let rows: Vec<_> = file.tokens.iter().map(row).collect();
    let head = ["NAME", "STATE", "CREATED", "EXPIRES", "SCOPES"];
    Ok(out::raw_lines(Screen::stdout().table(head, &rows))?)
}

fn state(token: &NamedToken, now: SystemTime) -> Cell {
    let left = token
        .expires_at()
        .map(|expires| expires.duration_since(now));
    match left {
        None => Cell::styled("valid", Style::Good),
        Some(Ok(left)) if !left.is_zero() => {
            Cell::styled(format!("expires in {}", span(left)), Style::Good)
        }
        Some(_) => Cell::styled("expired", Style::Bad),
    }
}

fn revoke(path: &Path, name: &str) -> anyhow::Result<()> {
    let locked = LockedFile::open(path, false)?;
    let mut file = locked.read()?;
    let before = file.tokens.len();
    file.tokens.retain(|token| token.name != name);
    if file.tokens.len() == before {
        bail!(
            "no token is named {name:?} in {}; see outpost token list",
            path.display()
        );
    }
    locked.replace(&file)
}

/// The token file, locked from the read to the write, so that concurrent commands do not overwrite each
/// other's changes.
struct LockedFile {
    /// The path without symbolic links, so that a write replaces the file and not a link to the file.
    path: PathBuf,
    /// Closing this file releases the lock.
    _lock: File,
}

impl LockedFile {
    /// Waits until no other command holds the lock. With `create`, creates an empty file if there is
    /// none.
    fn open(path: &Path, create: bool) -> anyhow::Result<Self> {
        let failed = || format!("cannot open {}", path.display());
        let absolute = std::path::absolute(path)?;
        // Without NONBLOCK, opening a FIFO would block.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(create).create(create).mode(0o600);
        options.custom_flags(flags);
        loop {
            let lock = options.open(&absolute).with_context(failed)?;
            lock.lock().with_context(failed)?;
            let path = fs::canonicalize(&absolute).with_context(failed)?;
            let identity = |file: &Metadata| (file.dev(), file.ino());
            let locked = identity(&lock.metadata().with_context(failed)?);
            // Another command may have replaced the file while this command waited for the lock.
            if fs::metadata(&path).is_ok_and(|now| identity(&now) == locked) {
                return Ok(LockedFile { path, _lock: lock });
            }
        }
    }

    fn read(&self) -> anyhow::Result<TokenFile> {
        read(&self.path)
    }

    fn replace(&self, file: &TokenFile) -> anyhow::Result<()> {
        let text = toml::to_string(file).context("cannot write the tokens")?;
        replace_private_file(&self.path, text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn read(path: &Path) -> anyhow::Result<TokenFile> {
    TokenFile::parse(&read_secret_file(path)?)
        .with_context(|| format!("cannot parse {}", path.display()))
}

/// The first time that cannot be printed: the year 10000.
fn latest() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(253_402_300_800)
}

fn date(seconds: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    match time.filter(|time| *time < latest()) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => "never".to_owned(),
    }
}

//! Hosts by name, as written in a file.
//!
//! ```toml
//! [hosts.build]
//! url = "wss://build.example:7443"
//! token_file = "~/.config/outpost/build.token"
//! fingerprint = "sha256:…"
//! cwd = "/srv/work"
//! ```

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use outpost_client::Fingerprint;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

use super::{
    Config,
    values::{Secret, expect},
};
use crate::args::{LOCAL, server_or_launched};

/// Names that would be taken for a part of a URL, or for this host.
const RESERVED: [&str; 8] = [LOCAL, "ws", "wss", "unix", "stdio", "ssh", "http", "https"];
const MAX_NAME: usize = 64;

/// A host that `--on` can name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostConfig {
    pub(crate) url: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    fingerprint: Option<String>,
    pub(crate) client_cert: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    /// The working directory of commands, and the base of relative paths.
    pub(crate) cwd: Option<String>,
}

impl HostConfig {
    /// Parses and checks the table `[hosts.NAME]`.
    pub(crate) fn parse(name: &str, table: &Value) -> anyhow::Result<Self> {
        check_host_name(name).map_err(anyhow::Error::msg)?;
        let host: HostConfig = serde_json::from_value(table.clone())?;
        let is_url = host.url.contains(':') && server_or_launched(&host.url).is_ok();
        ensure!(
            is_url,
            "expected a url that begins with ws://, wss://, unix:///, ssh:// or stdio:"
        );
        host.fingerprint()?;
        ensure!(
            host.fingerprint.is_none() || host.ca.is_none(),
            "expected ca or fingerprint, not both"
        );
        ensure!(
            host.client_cert.is_some() == host.client_key.is_some(),
            "expected client_cert and client_key together"
        );
        let files = [
            &host.token_file,
            &host.ca,
            &host.client_cert,
            &host.client_key,
        ];
        let is_fixed = |path: &PathBuf| path.is_absolute() || path.starts_with("~");
        ensure!(
            files.into_iter().flatten().all(is_fixed),
            "expected files with an absolute path, or one that begins with ~/"
        );
        let cwd = host.cwd.as_deref();
        ensure!(
            cwd.is_none_or(|cwd| Path::new(cwd).is_absolute()),
            "expected an absolute path as cwd"
        );
        Ok(host)
    }

    /// The only certificate to accept.
    pub(crate) fn fingerprint(&self) -> anyhow::Result<Option<Fingerprint>> {
        let text = self.fingerprint.as_deref();
        let parsed = text.map(str::parse).transpose();
        parsed.context("cannot use the fingerprint")
    }
}

/// Checks that a name can't be taken for a URL, a path or an option.
pub(crate) fn check_host_name(name: &str) -> Result<(), &'static str> {
    if RESERVED.contains(&name) {
        return Err("expected another name: this one is reserved");
    }
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= MAX_NAME && name.chars().all(is_valid) {
        Ok(())
    } else {
        Err(
            "expected a name of letters, digits, dots, dashes and underscores that begins with a \
             letter or digit",
        )
    }
}

/// Splits `NAME:PATH`.
pub(crate) fn split_host_path(text: &str) -> Option<(&str, &str)> {
    let (name, path) = text.split_once(':')?;
    check_host_name(name).is_ok().then_some((name, path))
}

/// Replaces a leading `~` by the home directory.
pub(crate) fn expand_home(path: &Path, home: Option<OsString>) -> anyhow::Result<PathBuf> {
    let Ok(rest) = path.strip_prefix("~") else {
        return Ok(path.to_owned());
    };
    let home = home.filter(|home| !home.is_empty());
    let home = home.with_context(|| format!("cannot use {}: HOME is not set", path.display()))?;
    Ok(PathBuf::from(home).join(rest))
}

/// Checks the tables of hosts.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Secret<Map<String, Value>>, D::Error> {
    let tables: Map<String, Value> =
        expect(deserializer, "a table for each host, as in [hosts.NAME]")?;
    parse(&tables).map_err(|error| D::Error::custom(format_args!("{error:#}")))?;
    Ok(Secret(tables))
}

impl Config {
    /// Hosts by name.
    pub(crate) fn hosts(&self) -> anyhow::Result<BTreeMap<String, HostConfig>> {
        parse(&self.hosts.0)
    }
}

/// Parses all hosts.
fn parse(tables: &Map<String, Value>) -> anyhow::Result<BTreeMap<String, HostConfig>> {
    let hosts = tables.iter().map(|(name, table)| {
        let host = HostConfig::parse(name, table);
        let host = host.with_context(|| format!("hosts.{name}"))?;
        Ok((name.clone(), host))
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: Value) -> String {
        let error = parse(value.as_object().unwrap()).unwrap_err();
        format!("{error:#}")
    }

    #[test]
    fn invalid_hosts_are_rejected_with_the_reason() {
        let messages: Vec<_> = [
            json!({"local": {"url": "ws://h"}}),
            json!({"a b": {"url": "ws://h"}}),
            json!({"h": {}}),
            json!({"h": {"url": "build"}}),
            json!({"h": {"url": "http://h"}}),
            json!({"h": {"url": "ws://h", "token": "secret"}}),
            json!({"h": {"url": "ws://h", "token_file": "relative"}}),
            json!({"h": {"url": "ws://h", "fingerprint": "sha1:aa"}}),
            json!({"h": {"url": "ws://h", "client_key": "/k"}}),
            json!({"h": {"url": "ws://h", "cwd": "a"}}),
        ]
        .into_iter()
        .map(message)
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        hosts.local: expected another name: this one is reserved
        hosts.a b: expected a name of letters, digits, dots, dashes and underscores that begins with a letter or digit
        hosts.h: missing field `url`
        hosts.h: expected a url that begins with ws://, wss://, unix:///, ssh:// or stdio:
        hosts.h: expected a url that begins with ws://, wss://, unix:///, ssh:// or stdio:
        hosts.h: unknown field `token`, expected one of `url`, `token_file`, `ca`, `fingerprint`, `client_cert`, `client_key`, `cwd`
        hosts.h: expected files with an absolute path, or one that begins with ~/
        hosts.h: cannot use the fingerprint: expected sha256: and 64 hexadecimal digits
        hosts.h: expected client_cert and client_key together
        hosts.h: expected an absolute path as cwd
        ");
    }

    #[test]
    fn host_and_path_are_split_at_the_first_colon() {
        assert_eq!(split_host_path("build:/a:b"), Some(("build", "/a:b")));
        assert_eq!(split_host_path("build:"), Some(("build", "")));
        for path in ["./a:b", "/a:b", "a/b:c", "-x:y", "ws:x", "local:x", "a"] {
            assert_eq!(split_host_path(path), None, "{path}");
        }
    }

    #[test]
    fn home_is_expanded() {
        let expand = |path: &str, home: Option<&str>| {
            let expanded = expand_home(Path::new(path), home.map(Into::into));
            expanded.ok().map(|path| path.display().to_string())
        };
        assert_eq!(expand("~/t", Some("/h")).as_deref(), Some("/h/t"));
        assert_eq!(expand("/t", None).as_deref(), Some("/t"));
        assert_eq!(expand("~/t", None), None);
    }
}

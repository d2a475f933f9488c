//! Changes hosts in the user's configuration file, and keeps everything else in it.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::config::{self, ConfigFiles};

const HOSTS: &str = "hosts";

/// The user's configuration file, which need not exist.
pub(super) fn user_file() -> anyhow::Result<PathBuf> {
    let files = ConfigFiles::new(None, |name| std::env::var_os(name));
    files
        .user
        .context("cannot locate the user's outpost.toml: HOME is not set")
}

/// Adds a host with these members.
pub(super) fn add(
    file: &Path,
    name: &str,
    members: &[(&str, Value)],
    replace: bool,
) -> anyhow::Result<()> {
    let mut document = read(file)?;
    let hosts = document.entry(HOSTS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let hosts = hosts.as_table_mut().with_context(|| {
        format!(
            "cannot change {}: hosts is an inline table; write each host as [hosts.NAME]",
            file.display()
        )
    })?;
    if hosts.contains_key(name) && !replace {
        bail!(
            "there is a host {name} in {} already; use --replace to replace it",
            file.display()
        );
    }
    let mut table = Table::new();
    for (key, member) in members {
        table[key] = value(member.as_str().unwrap_or_default());
    }
    match hosts.get_mut(name).and_then(Item::as_table_mut) {
        // The comments above the table stay.
        Some(existing) => {
            *table.decor_mut() = existing.decor().clone();
            table.set_position(existing.position());
            *existing = table;
        }
        None => drop(hosts.insert(name, Item::Table(table))),
    }
    write(file, &document.to_string())
}

/// Removes a host.
pub(super) fn remove(file: &Path, name: &str) -> anyhow::Result<()> {
    let mut document = read(file)?;
    let hosts = document.get_mut(HOSTS).and_then(Item::as_table_like_mut);
    if hosts.and_then(|hosts| hosts.remove(name)).is_none() {
        bail!("there is no host {name} in {}", file.display());
    }
    write(file, &document.to_string())
}

fn read(file: &Path) -> anyhow::Result<DocumentMut> {
    let text = config::read_file(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let document = text.unwrap_or_default().parse::<DocumentMut>();
    // Without the parser's excerpt, which may contain a secret.
    document.map_err(|error| anyhow!("cannot change {}: {}", file.display(), error.message()))
}

/// Replaces the file atomically. A link stays, and the file that it points to is replaced.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let replace = || -> io::Result<()> {
        let directory = file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        let mut created = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        let written = (|| {
            if let Ok(metadata) = fs::metadata(&file) {
                created.set_permissions(metadata.permissions())?;
            }
            created.write_all(text.as_bytes())?;
            created.sync_all()?;
            fs::rename(&temporary, &file)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    };
    replace().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_other_settings_stay() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sub/outpost.toml");
        add(&file, "first", &[("url", "ws://a".into())], false).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let text = format!("# mine\nretain_bytes = \"1MiB\" # enough\n\n# the first\n{text}");
        fs::write(&file, text).unwrap();
        let members = [("url", "wss://b".into()), ("cwd", "/srv".into())];
        add(&file, "second", &members, false).unwrap();
        let again = add(&file, "second", &members, false).unwrap_err();
        assert!(again.to_string().contains("--replace"), "{again}");
        add(&file, "first", &[("url", "ws://c".into())], true).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(text, @r#"
        # mine
        retain_bytes = "1MiB" # enough

        # the first
        [hosts.first]
        url = "ws://c"

        [hosts.second]
        url = "wss://b"
        cwd = "/srv"
        "#);
        remove(&file, "first").unwrap();
        assert!(remove(&file, "first").is_err());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("# mine") && text.contains("[hosts.second]"));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn file_that_is_not_toml_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("outpost.toml");
        fs::write(&file, "token = s3cret").unwrap();
        let error = add(&file, "a", &[("url", "ws://a".into())], false).unwrap_err();
        assert!(!format!("{error:#}").contains("s3cret"), "{error:#}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "token = s3cret");
    }
}

//! Opens the audit log that the configuration names.

use std::path::PathBuf;

use anyhow::{Context, bail};
use outpost_server::AuditLog;

use crate::{
    config::{Config, STDERR},
    logging::StderrWriter,
};

/// Opens the audit log, if there is to be one.
pub(crate) fn open(config: &Config) -> anyhow::Result<Option<AuditLog>> {
    let is_required = config.audit_required;
    if let Some(path) = config.audit_file() {
        let log = AuditLog::to_file(path, is_required);
        let log = log.with_context(|| format!("cannot open the audit log {}", path.display()))?;
        return Ok(Some(log));
    }
    if config.audit_log.as_os_str() == STDERR {
        let log = AuditLog::to_writer(Box::new(StderrWriter), is_required);
        return Ok(Some(log.context("cannot start the audit log")?));
    }
    if is_required {
        bail!("--audit-required needs --audit-log FILE, or --audit-log stderr");
    }
    Ok(None)
}

impl Config {
    /// The file of the audit log, if it is one.
    pub(crate) fn audit_file(&self) -> Option<&PathBuf> {
        let path = &self.audit_log;
        let is_file = !path.as_os_str().is_empty() && path.as_os_str() != STDERR;
        is_file.then_some(path)
    }
}

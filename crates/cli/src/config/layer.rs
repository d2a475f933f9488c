//! What one source says.

use std::path::PathBuf;

use serde_json::Value;

use super::{Setting, spoken::Wrong};

/// Who can say how the server is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    CommandLine,
    Environment,
    User(PathBuf),
    System(PathBuf),
    Default,
}

/// What one source says; it may be nothing.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) entries: Vec<Entry>,
}

/// One setting, as one source has it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) setting: &'static Setting,
    /// In the form in which it is shown.
    pub(crate) value: Value,
    /// Where in its file it is.
    pub(crate) line: Option<usize>,
}

impl Layer {
    pub(crate) fn new(source: Source) -> Self {
        Layer {
            source,
            entries: Vec::new(),
        }
    }

    /// What is built in.
    pub(crate) fn defaults(table: &'static [Setting]) -> Self {
        let entries = table.iter().map(|setting| Entry {
            setting,
            value: setting.default(),
            line: None,
        });
        Layer {
            source: Source::Default,
            entries: entries.collect(),
        }
    }

    /// Adds what the source says about a setting, if it makes sense.
    pub(crate) fn say(
        &mut self,
        setting: &'static Setting,
        value: &Value,
        line: Option<usize>,
    ) -> Result<(), Wrong> {
        let value = setting.field.read(value)?;
        self.entries.push(Entry {
            setting,
            value,
            line,
        });
        Ok(())
    }

    pub(crate) fn entry(&self, setting: &Setting) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.setting.key == setting.key)
    }
}

//! Settings about MCP servers.

use std::collections::BTreeMap;

use outpost_mcp::ServerConfig;
use serde_json::{Map, Value};

use super::{
    file,
    spoken::{Spoken, Wrong},
};
use crate::args::server_or_launched;

/// The servers, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct McpServers {
    pub(crate) servers: BTreeMap<String, ServerConfig>,
    /// The same in the words of whoever wrote it.
    said: Map<String, Value>,
}

impl Spoken for McpServers {
    fn value_of_text(text: &str) -> Value {
        match text.trim() {
            "" => Value::Object(Map::new()),
            text => file::value(text).unwrap_or(Value::from(text)),
        }
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str = "a table for each server, as in [mcp_servers.NAME]";
        let said = value.as_object().ok_or(Wrong::Expected(EXPECTED))?;
        let servers = said.iter().map(|(name, value)| {
            let config = ServerConfig::read(name, value).map_err(Box::new)?;
            Ok((name.clone(), config))
        });
        Ok(McpServers {
            servers: servers.collect::<Result<_, Wrong>>()?,
            said: said.clone(),
        })
    }

    fn to_value(&self) -> Value {
        Value::Object(self.said.clone())
    }
}

/// The place where remote servers run, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemotePlace(pub(crate) Option<String>);

impl Spoken for RemotePlace {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str =
            "a URL that begins with ws://, wss:// or unix:///, or stdio: and a command";
        match value.as_str() {
            Some("") => Ok(RemotePlace(None)),
            Some(on) if server_or_launched(on).is_ok() => Ok(RemotePlace(Some(on.to_owned()))),
            _ => Err(Wrong::Expected(EXPECTED)),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(self.0.as_deref().unwrap_or_default())
    }
}

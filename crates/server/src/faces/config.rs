//! `config/read`.

use outpost_protocol::{ConfigReadParams, ConfigReadResult, RpcError, parse_params};
use serde_json::value::RawValue;

use crate::Host;

/// How much of a parser's complaint is passed on.
const MAX_WORDS: usize = 300;

/// What is in force, and if asked for what each source says by itself.
pub(crate) fn read(host: &Host, params: Option<&RawValue>) -> Result<ConfigReadResult, RpcError> {
    let params: ConfigReadParams = parse_params(params).map_err(|error| {
        let words: String = error.to_string().chars().take(MAX_WORDS).collect();
        RpcError::invalid_request(format!("Invalid request: {words}"))
    })?;
    let mut result = host.configuration.clone();
    if !params.include_layers {
        result.layers = None;
    }
    Ok(result)
}

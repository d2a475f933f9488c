//! `config/read`.

use outpost_protocol::{ConfigReadParams, ConfigReadResult};

use crate::Host;

/// Returns the effective configuration, and its layers if requested.
pub(crate) fn read(host: &Host, params: ConfigReadParams) -> ConfigReadResult {
    let mut result = host.configuration.clone();
    if !params.include_layers {
        result.layers = None;
    }
    result
}

//! `config/read`.

use outpost_protocol::{ConfigReadParams, ConfigReadResult};

use crate::Host;

/// What is in force, and if asked for what each source says by itself.
pub(crate) fn read(host: &Host, params: ConfigReadParams) -> ConfigReadResult {
    let mut result = host.configuration.clone();
    if !params.include_layers {
        result.layers = None;
    }
    result
}

//! The tool `resize_terminal`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::in_range;
use crate::serve::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResizeTerminal {
    /// The id of the process.
    process_id: String,
    /// The height in lines.
    #[schemars(range(min = 1))]
    rows: u16,
    /// The width in characters.
    #[schemars(range(min = 1))]
    cols: u16,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Resized {
    process_id: String,
    rows: u16,
    cols: u16,
}

impl Tool for ResizeTerminal {
    const NAME: &'static str = "resize_terminal";
    const TITLE: &'static str = "Resize a process's terminal";
    const DESCRIPTION: &'static str = "Resizes the terminal of a process that was started with \
        \"tty\": true.";
    const EFFECT: Effect = Effect::Idempotent;

    type Output = Resized;

    async fn call(self, server: &ToolServer, _context: &CallContext) -> Result<Resized, ToolError> {
        let ResizeTerminal {
            process_id,
            rows,
            cols,
        } = self;
        for (name, value) in [("rows", rows), ("cols", cols)] {
            in_range(name, Some(value.into()), 0, (1, u64::from(u16::MAX)))?;
        }
        if !server.processes.find(&process_id)?.tty {
            return Err(ToolError::NoTerminal { id: process_id });
        }
        let process = server.processes.find_running(&process_id)?;
        process.handle.resize(rows, cols).await?;
        Ok(Resized {
            process_id,
            rows,
            cols,
        })
    }
}

impl ToolOutput for Resized {
    fn to_text(&self) -> String {
        let Resized {
            process_id,
            rows,
            cols,
        } = self;
        format!("the terminal of process {process_id} has {rows} lines of {cols} characters")
    }
}

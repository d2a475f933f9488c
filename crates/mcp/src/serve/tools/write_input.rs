//! The tool `write_input`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer, text};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    /// The id of the process.
    process_id: String,
    /// The exact text to write: a line needs its "\n"; on a terminal, control characters are
    /// keys ("\u0003" is Ctrl-C, "\u001b[A" the key up).
    text: Option<String>,
    /// Close the input afterwards, like Ctrl-D.
    end_input: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    process_id: String,
    /// The number of bytes accepted.
    written_bytes: u64,
    /// The end of its output before the write. Output after this cursor followed the input.
    cursor: u64,
    /// Whether the input was closed.
    input_ended: bool,
}

impl Tool for WriteInput {
    const NAME: &'static str = "write_input";
    const TITLE: &'static str = "Write to a process";
    const DESCRIPTION: &'static str = "Writes to the stdin or terminal of a process that was \
        started with start_process, and can close its input. To see its reaction, call \
        read_output with wait_ms and the cursor in the response.";
    const EFFECT: Effect = Effect::OpenWorld;

    type Output = Written;

    async fn call(self, server: &ToolServer, context: &CallContext) -> Result<Written, ToolError> {
        let process = server.processes.find_running(&self.process_id)?;
        let cursor = process.monitor.lock().log.end();
        let text = self.text.unwrap_or_default();
        let written_bytes = text.len() as u64;
        let end_input = self.end_input.unwrap_or(false);
        let work = async {
            process.handle.write(text).await?;
            if end_input {
                process.handle.close_stdin().await?;
            }
            Ok::<_, outpost_client::Error>(())
        };
        let message = || "waiting for the process to read its input".to_owned();
        let within = server.limits().wait_max;
        let writing = context.run(within, message, tokio::time::timeout(within, work));
        match writing.await? {
            Ok(written) => written?,
            Err(_) => {
                let id = self.process_id;
                return Err(ToolError::NotRead { id, within });
            }
        }
        Ok(Written {
            process_id: self.process_id,
            written_bytes,
            cursor,
            input_ended: end_input,
        })
    }
}

impl ToolOutput for Written {
    fn to_text(&self) -> String {
        let closed = if self.input_ended {
            " and closed its input"
        } else {
            ""
        };
        format!(
            "wrote {} to process {}{closed}; its reaction starts at cursor {}",
            text::bytes(self.written_bytes),
            self.process_id,
            self.cursor,
        )
    }
}

//! The tool `send_signal`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::IntoDeserializer as _};

use crate::serve::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendSignal {
    /// The id of the process.
    process_id: String,
    /// The signal.
    #[serde(deserialize_with = "parse_signal")]
    signal: Signal,
}

/// Accepts `SIGINT` and `int` as well as `INT`.
fn parse_signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Signal, D::Error> {
    let name = String::deserialize(deserializer)?.to_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    Signal::deserialize(name.into_deserializer())
}

// No doc comment: it would become part of the tool's schema.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Signal {
    Int,
    Term,
    Kill,
    Hup,
    Quit,
    Stop,
    Cont,
    Usr1,
    Usr2,
    Winch,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Sent {
    process_id: String,
    signal: Signal,
}

impl Tool for SendSignal {
    const NAME: &'static str = "send_signal";
    const TITLE: &'static str = "Signal a process";
    const DESCRIPTION: &'static str = "Sends a signal to a running process and its process group: \
        INT is Ctrl-C, HUP makes many servers reload their configuration. To terminate a process \
        with everything it started, use stop_process.";
    const EFFECT: Effect = Effect::Destructive;

    type Output = Sent;

    async fn call(self, server: &ToolServer, _context: &CallContext) -> Result<Sent, ToolError> {
        let process = server.processes.find_running(&self.process_id)?;
        process.handle.signal(self.signal.into()).await?;
        Ok(Sent {
            process_id: self.process_id,
            signal: self.signal,
        })
    }
}

impl From<Signal> for outpost_client::Signal {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Int => outpost_client::Signal::Interrupt,
            Signal::Term => outpost_client::Signal::Terminate,
            Signal::Kill => outpost_client::Signal::Kill,
            Signal::Hup => outpost_client::Signal::Hangup,
            Signal::Quit => outpost_client::Signal::Quit,
            Signal::Stop => outpost_client::Signal::Stop,
            Signal::Cont => outpost_client::Signal::Continue,
            Signal::Usr1 => outpost_client::Signal::User1,
            Signal::Usr2 => outpost_client::Signal::User2,
            Signal::Winch => outpost_client::Signal::WindowChange,
        }
    }
}

impl ToolOutput for Sent {
    fn to_text(&self) -> String {
        let signal = format!("{:?}", self.signal).to_uppercase();
        format!("sent {signal} to process {}", self.process_id)
    }
}

//! A signal for a process.

use outpost_client::SignalName;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::IntoDeserializer as _};

use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendSignal {
    /// Which process.
    process_id: String,
    /// Which signal.
    #[serde(deserialize_with = "by_any_name")]
    signal: Signal,
}

/// Whoever writes `SIGINT` or `int` means the same.
fn by_any_name<'de, D: Deserializer<'de>>(from: D) -> Result<Signal, D::Error> {
    let name = String::deserialize(from)?.to_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    Signal::deserialize(name.into_deserializer())
}

/// As the system calls them.
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
    const DESCRIPTION: &'static str = "Sends a signal to a running process and its whole process \
        group: INT is what Ctrl-C does, HUP makes many servers read their configuration again. To \
        end a process with everything it has started, use stop_process.";
    const EFFECT: Effect = Effect::Changes;

    type Answer = Sent;

    async fn perform(self, bench: &Workbench, _call: &Call) -> Result<Sent, Mishap> {
        let job = bench.roster.find(&self.process_id)?;
        let state = job.follow.state();
        if !state.is_running() {
            return Err(Mishap::HasEnded {
                id: job.id.clone(),
                code: state.exit_code(),
            });
        }
        job.process.signal(self.signal.into()).await?;
        Ok(Sent {
            process_id: job.id.clone(),
            signal: self.signal,
        })
    }
}

impl From<Signal> for SignalName {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Int => SignalName::Interrupt,
            Signal::Term => SignalName::Terminate,
            Signal::Kill => SignalName::Kill,
            Signal::Hup => SignalName::Hangup,
            Signal::Quit => SignalName::Quit,
            Signal::Stop => SignalName::Stop,
            Signal::Cont => SignalName::Continue,
            Signal::Usr1 => SignalName::User1,
            Signal::Usr2 => SignalName::User2,
            Signal::Winch => SignalName::WindowChange,
        }
    }
}

impl Answer for Sent {
    fn words(&self) -> String {
        let signal = format!("{:?}", self.signal).to_uppercase();
        format!("sent {signal} to process {}", self.process_id)
    }
}

//! The target of a request that ends or signals processes.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Event, Text};

/// The params of a request that ends or signals processes, of any dialect. Lenient: whatever the method
/// accepts, so does this.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SignalRequest<'a> {
    #[serde(borrow)]
    process_id: Option<&'a RawValue>,
    #[serde(borrow)]
    process_handle: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    signal: Option<&'a RawValue>,
}

impl<'a> SignalRequest<'a> {
    pub(crate) fn parse(params: Option<&'a RawValue>) -> Self {
        let parsed = params.map(|params| serde_json::from_str(params.get()));
        parsed.and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn process(&self) -> Option<String> {
        text_of(self.process_id).or_else(|| text_of(self.process_handle))
    }

    pub(crate) fn session(&self) -> Option<String> {
        text_of(self.session_id)
    }

    pub(crate) fn event(&self, request: &'static str) -> Event<'static> {
        Event::Signal {
            request,
            signal: text_of(self.signal).map(Text::new),
        }
    }
}

fn text_of(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_params_hide_a_signal() {
        for (params, process, signal) in [
            (
                r#"{"processId":"p","signal":9,"sessionId":[]}"#,
                Some("p"),
                None,
            ),
            (r#"{"processHandle":"h","processId":null}"#, Some("h"), None),
            (
                r#"{"processHandle":"h","signal":"kill"}"#,
                Some("h"),
                Some("kill"),
            ),
            ("[]", None, None),
        ] {
            let params = serde_json::from_str(params).expect("JSON");
            let request = SignalRequest::parse(Some(params));
            assert_eq!(request.process().as_deref(), process);
            let event = request.event("process/kill");
            let mut expected = json!({"event": "signal", "request": "process/kill"});
            if let Some(signal) = signal {
                expected["signal"] = signal.into();
            }
            assert_eq!(serde_json::to_value(event).expect("JSON"), expected);
        }
    }
}

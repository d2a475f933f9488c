//! Builds the params of `process/start`.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::TestTag;

/// The `PATH` of test processes.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The params of `process/start`, with every member a released client sends.
#[derive(Clone, Debug)]
pub struct Start {
    /// Without an environment: the tag and a PATH.
    params: Map<String, Value>,
}

/// A shell script.
pub fn sh(id: &str, script: &str) -> Start {
    Start::new(id, &["/bin/sh", "-c", script])
}

impl Start {
    /// A program on pipes, without input, in `/tmp`.
    pub fn new(id: &str, argv: &[&str]) -> Self {
        let params = json!({
            "processId": id,
            "argv": argv,
            "cwd": "file:///tmp",
            "tty": false,
            "pipeStdin": false,
            "arg0": null,
        });
        let Value::Object(params) = params else {
            unreachable!("the literal is an object");
        };
        Start { params }
    }

    /// On a PTY.
    pub fn tty(self) -> Self {
        self.with("tty", true)
    }

    /// With input from a pipe.
    pub fn stdin(self) -> Self {
        self.with("pipeStdin", true)
    }

    /// Sets the working directory.
    pub fn cwd(self, path: &Path) -> Self {
        self.with("cwd", file_uri(path))
    }

    /// Sets the whole environment, without the tag.
    pub fn env(self, env: &[(&str, &str)]) -> Self {
        self.with("env", json!(BTreeMap::from_iter(env.iter().copied())))
    }

    /// Sets a param.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// Removes a param.
    pub fn without(mut self, name: &str) -> Self {
        self.params.remove(name);
        self
    }

    /// The process id.
    pub fn id(&self) -> &str {
        self.params["processId"].as_str().unwrap_or_default()
    }

    /// Returns the params, with the tag in the environment.
    pub(crate) fn into_params(mut self, tag: &TestTag) -> Value {
        let env = || json!({"PATH": PATH, TestTag::VARIABLE: tag.as_str()});
        self.params.entry("env").or_insert_with(env);
        Value::Object(self.params)
    }
}

/// Converts a path to a `file:` URI.
pub fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri
}

/// Encodes bytes as base64.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Decodes a base64 JSON string.
pub fn unbase64(value: &Value) -> Vec<u8> {
    let text = value.as_str();
    let text = text.unwrap_or_else(|| panic!("{value} is not a string"));
    STANDARD
        .decode(text)
        .unwrap_or_else(|error| panic!("{value} is not base64: {error}"))
}

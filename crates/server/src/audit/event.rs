//! The events of the audit log, with the members of their lines. They hold no values of the environment, no
//! content of files, no tokens and no query strings.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use outpost_engine::{
    ResourceLimits, Start,
    sandbox::{Network, policy::FileSystem},
};
use outpost_protocol::{AccessScope, EndedBy, ErrorKind, NetworkDecision};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Subject;

/// The maximum of the arguments of one start, in bytes with a few for each argument.
const MAX_ARGV_BYTES: usize = 8 * 1024;
/// Bytes that an argument counts besides its text.
const ARGUMENT_BYTES: usize = 4;
/// The maximum of a path, in bytes: that of the kernel.
const MAX_PATH_BYTES: usize = 4096;
/// The maximum of any other text, in bytes.
const MAX_TEXT_BYTES: usize = 512;
/// The maximum of a sandbox policy, in bytes of JSON.
const MAX_POLICY_BYTES: usize = 8 * 1024;
/// The last second that RFC 3339 can express: the end of the year 9999.
const MAX_TIME: Duration = Duration::from_secs(253_402_300_799);

/// An event. The member `event` names it.
#[derive(Debug, Serialize)]
#[serde(
    tag = "event",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Event<'a> {
    /// A client has connected.
    Connect {},
    /// A client was refused before it had a principal.
    AuthFailed {
        reason: Text<'a>,
        /// The refusals of its address since the last line, if they are several.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// A process is about to start.
    Start {
        argv: Vec<Cow<'a, str>>,
        #[serde(skip_serializing_if = "is_false")]
        argv_cut: bool,
        cwd: Text<'a>,
        sandbox: Option<SandboxRecord>,
        limits: &'a ResourceLimits,
    },
    /// A process has exited, or was not started.
    Exit {
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ended_by: Option<EndedBy>,
        /// The kind of the error if it was not started.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorKind>,
        /// Decisions of its proxy that are missing in the log.
        #[serde(skip_serializing_if = "is_zero")]
        lost_decisions: u64,
    },
    /// A process is about to be signalled or terminated, or all of a session.
    Signal {
        request: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<Text<'a>>,
    },
    /// A file is about to be written, or a directory created.
    WriteFile {
        path: Text<'a>,
        /// The original of a copy.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<Text<'a>>,
    },
    /// A file or directory is about to be removed.
    Remove { path: Text<'a> },
    /// An HTTP request is about to be made.
    Http { method: Text<'a>, host: Text<'a> },
    /// The proxy of a process has made a decision.
    Network { decision: Cow<'a, NetworkDecision> },
    /// A request was refused to the principal.
    Forbidden {
        request: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<AccessScope>,
        reason: Text<'a>,
    },
    /// A connection has ended.
    Disconnect { reason: &'static str },
    /// Lines were dropped because the log could not be written in time.
    Lost { lines: u64 },
}

/// The sandbox of a process, as it is enforced.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxRecord {
    /// Absent if it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_system: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "is_false")]
    file_system_cut: bool,
    network: NetworkRecord,
}

/// The network of a sandboxed process, as it is enforced.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum NetworkRecord {
    Restricted,
    Enabled,
    /// Only what its proxy, or its ports of the host's loopback address, let through.
    Managed,
}

/// A text of bounded length. One that was cut ends with an ellipsis.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    pub(crate) fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Text(cut(text.into(), MAX_TEXT_BYTES))
    }

    fn path(path: &'a Path) -> Self {
        Text(cut(path.to_string_lossy(), MAX_PATH_BYTES))
    }
}

impl<'a> Event<'a> {
    pub(crate) fn start(start: &'a Start) -> Self {
        let (argv, argv_cut) = bounded_argv(&start.argv);
        Event::Start {
            argv,
            argv_cut,
            cwd: Text::path(&start.cwd),
            sandbox: SandboxRecord::of(start),
            limits: &start.limits,
        }
    }

    pub(crate) fn not_started(error: ErrorKind) -> Self {
        Event::Exit {
            code: None,
            ended_by: None,
            error: Some(error),
            lost_decisions: 0,
        }
    }

    pub(crate) fn write_file(path: &'a Path, source: Option<&'a Path>) -> Self {
        Event::WriteFile {
            path: Text::path(path),
            source: source.map(Text::path),
        }
    }

    pub(crate) fn remove(path: &'a Path) -> Self {
        Event::Remove {
            path: Text::path(path),
        }
    }

    pub(crate) fn http(method: &'a str, host: &'a str) -> Self {
        Event::Http {
            method: Text::new(method),
            host: Text::new(host),
        }
    }

    pub(crate) fn network(decision: &'a NetworkDecision) -> Self {
        let texts = [&decision.reason, &decision.host];
        let methods = decision.method.iter();
        let is_short = |text: &String| text.len() <= MAX_TEXT_BYTES;
        if texts.into_iter().chain(methods).all(is_short) {
            return Event::Network {
                decision: Cow::Borrowed(decision),
            };
        }
        let short = |text: &str| cut(text.into(), MAX_TEXT_BYTES).into_owned();
        Event::Network {
            decision: Cow::Owned(NetworkDecision {
                reason: short(&decision.reason),
                host: short(&decision.host),
                method: decision.method.as_deref().map(short),
                ..decision.clone()
            }),
        }
    }

    /// Encodes the line of an event. It is ASCII, so that no text of a client controls a terminal.
    pub(super) fn line(&self, subject: Subject<'_>, now: SystemTime) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            time: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            principal: Option<Text<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            connection: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            address: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session: Option<Text<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            process: Option<Text<'a>>,
            #[serde(flatten)]
            event: &'a Event<'a>,
        }
        let line = Line {
            time: timestamp(now),
            principal: subject.principal.map(Text::new),
            connection: subject.connection,
            address: subject.address,
            session: subject.session.map(Text::new),
            process: subject.process.map(Text::new),
            event: self,
        };
        // Fails for no type in a line.
        let mut encoded = encode(&line).unwrap_or_default();
        encoded.push(b'\n');
        encoded
    }
}

impl SandboxRecord {
    fn of(start: &Start) -> Option<Self> {
        let policy = start.policy()?;
        let managed = start.network.as_ref();
        let network = match policy.network {
            _ if managed.is_some_and(|network| network.is_enforced) => NetworkRecord::Managed,
            Network::Restricted => NetworkRecord::Restricted,
            Network::Enabled => NetworkRecord::Enabled,
        };
        Some(Self::new(&policy.file_system, network))
    }

    fn new(files: &FileSystem, network: NetworkRecord) -> Self {
        let file_system = encode_policy(files);
        SandboxRecord {
            file_system_cut: file_system.is_none(),
            file_system,
            network,
        }
    }
}

fn encode_policy(files: &FileSystem) -> Option<Box<RawValue>> {
    let encoded = String::from_utf8(encode(files)?).ok()?;
    (encoded.len() <= MAX_POLICY_BYTES).then(|| RawValue::from_string(encoded).ok())?
}

/// Returns the arguments that fit, and whether some do not.
fn bounded_argv(argv: &[String]) -> (Vec<Cow<'_, str>>, bool) {
    let mut left = MAX_ARGV_BYTES;
    let mut kept = Vec::new();
    for argument in argv {
        let Some(rest) = left.checked_sub(ARGUMENT_BYTES) else {
            return (kept, true);
        };
        if argument.len() > rest {
            kept.push(cut(argument.into(), rest));
            return (kept, true);
        }
        left = rest - argument.len();
        kept.push(argument.into());
    }
    (kept, false)
}

/// Cuts a text that is longer than `max` bytes, at the end of a character.
fn cut(text: Cow<'_, str>, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text;
    }
    let kept = text.floor_char_boundary(max);
    Cow::Owned(format!("{}…", &text[..kept]))
}

fn timestamp(now: SystemTime) -> String {
    let now = now.clamp(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + MAX_TIME);
    humantime::format_rfc3339_millis(now).to_string()
}

fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut encoded = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut encoded, Ascii);
    value.serialize(&mut serializer).ok()?;
    Some(encoded)
}

/// Escapes every character that is not ASCII.
struct Ascii;

impl serde_json::ser::Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut escaped = String::with_capacity(fragment.len());
        for c in fragment.chars() {
            match c {
                // Delete is ASCII, and a control character that JSON permits.
                ' '..='~' => escaped.push(c),
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(escaped, "\\u{unit:04x}");
                    }
                }
            }
        }
        writer.write_all(escaped.as_bytes())
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use outpost_engine::sandbox::{
        Access,
        policy::{Entry, SpecialPath},
    };
    use serde_json::{Value, json};

    use super::*;

    fn parsed(event: &Event<'_>) -> Value {
        let subject = Subject {
            principal: Some("ci"),
            ..Subject::default()
        };
        let line = event.line(subject, SystemTime::UNIX_EPOCH);
        assert!(line.is_ascii() && line.ends_with(b"\n"));
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&line).expect("JSON")
    }

    #[test]
    fn line_is_one_ascii_object() {
        let event = Event::Forbidden {
            request: "fs/remove",
            scope: Some(AccessScope::FilesWrite),
            reason: Text::new("a\nb\u{9b}\u{7f}\u{202e}é😀"),
        };
        let expected = json!({
            "time": "1970-01-01T00:00:00.000Z", "principal": "ci", "event": "forbidden",
            "request": "fs/remove", "scope": "files:write", "reason": "a\nb\u{9b}\u{7f}\u{202e}é😀",
        });
        assert_eq!(parsed(&event), expected);
    }

    #[test]
    fn argv_is_cut_and_says_so() {
        let cut = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|one| (*one).to_owned()).collect();
            let (kept, is_cut) = bounded_argv(&argv);
            let kept: Vec<String> = kept.into_iter().map(Cow::into_owned).collect();
            (kept, is_cut)
        };
        assert_eq!(
            cut(&["a", ""]),
            (vec!["a".to_owned(), String::new()], false)
        );
        let long = "é".repeat(MAX_ARGV_BYTES);
        let (kept, is_cut) = cut(&["a", &long, "b"]);
        assert!(is_cut && kept.len() == 2 && kept[1].ends_with("é…"));
        assert!(kept[1].len() <= MAX_ARGV_BYTES);
        let (kept, is_cut) = cut(&vec![""; MAX_ARGV_BYTES]);
        assert!(is_cut && kept.len() == MAX_ARGV_BYTES / ARGUMENT_BYTES);
    }

    #[test]
    fn longest_line_is_bounded() {
        let long = "\u{1}".repeat(1 << 20);
        let path = Path::new(&long);
        let argv = [long.clone()];
        let (argv, argv_cut) = bounded_argv(&argv);
        let policy_of = |length: usize| {
            let path = SpecialPath::ProjectRoots {
                subpath: Some("a".repeat(length).into()),
            };
            FileSystem::restricted(vec![Entry::special(path, Access::Read)])
        };
        let empty = encode(&policy_of(0)).expect("JSON").len();
        let longest = MAX_POLICY_BYTES - empty;
        let event = Event::Start {
            argv,
            argv_cut,
            cwd: Text::path(path),
            sandbox: Some(SandboxRecord::new(
                &policy_of(longest),
                NetworkRecord::Managed,
            )),
            limits: &ResourceLimits::default(),
        };
        let subject = Subject {
            principal: Some(&long),
            process: Some(&long),
            ..Subject::default()
        };
        let line = event.line(subject, SystemTime::UNIX_EPOCH - Duration::from_secs(1));
        assert!(line.len() < 96 * 1024, "{}", line.len());
        let line: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(line["sandbox"]["fileSystem"]["type"], "restricted");
        let longer = SandboxRecord::new(&policy_of(longest + 1), NetworkRecord::Restricted);
        let expected = json!({"fileSystemCut": true, "network": "restricted"});
        assert_eq!(serde_json::to_value(longer).expect("JSON"), expected);
    }
}

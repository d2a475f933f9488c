//! Enums accept only the names of their variants.

use std::fmt::Debug;
use std::path::PathBuf;

use outpost_protocol::{
    CommandParams, ConfigSource, Delivery, EntryKind, EnvironmentStatus, Inherit, ProcessState,
    RedirectPolicy, SandboxPermissions, SandboxPolicy, SandboxType, Signal, StartParams, Stream,
    TreeKind, WriteStatus, parse_params,
};
use outpost_types::sandbox::{
    Access, EntryPath, FileSystem, Level, MissingPathBehavior, Network, SpecialPath,
};
use outpost_types::{
    DecisionScope, DecisionSource, DomainAccess, NetworkAnswer, NetworkProtocol, NetworkVerdict,
    ProxyMode, UnixSocketAccess,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Buffers its member in memory, as serde does for internally tagged enums.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Buffered<T> {
    A { value: T },
}

/// Deserializes from text and from a buffered value.
fn reads<T: DeserializeOwned + Debug>(value: &Value) -> [Option<T>; 2] {
    let buffered = json!({"type": "A", "value": value});
    let buffered: Option<Buffered<T>> = serde_json::from_str(&buffered.to_string()).ok();
    [
        serde_json::from_str(&value.to_string()).ok(),
        buffered.map(|Buffered::A { value }| value),
    ]
}

fn rejects<T: DeserializeOwned + Debug>(value: &Value) {
    for read in reads::<T>(value) {
        assert!(read.is_none(), "{value} is read as {read:?}");
    }
}

/// Checks that an enum accepts these names and no other form of its variants.
fn names<T: DeserializeOwned + Serialize + Debug>(all: &[&str]) {
    for word in all {
        for read in reads::<T>(&json!(word)) {
            assert_eq!(json!(read.unwrap()), json!(word));
        }
        rejects::<T>(&json!({ (*word): null }));
        rejects::<T>(&json!({ (*word): {} }));
        rejects::<T>(&json!([word]));
    }
    for number in 0..=all.len() {
        rejects::<T>(&json!(number));
        rejects::<T>(&json!({ number.to_string(): null }));
    }
    for other in [json!(true), json!(null), json!(""), json!({}), json!([])] {
        rejects::<T>(&other);
    }
}

/// Checks that a tagged enum accepts these examples, and no other form of the tag.
fn kinds<T: DeserializeOwned + Serialize + Debug>(tag: &str, all: &[Value]) {
    for (place, example) in all.iter().enumerate() {
        for read in reads::<T>(example) {
            assert_eq!(json!(read.unwrap()), *example);
        }
        let word = &example[tag];
        for other in [
            json!(place),
            json!(place.to_string()),
            json!({ word.as_str().unwrap(): null }),
            json!([word]),
            json!(true),
            json!(null),
        ] {
            let mut mistaken = example.clone();
            mistaken[tag] = other;
            rejects::<T>(&mistaken);
        }
        rejects::<T>(word);
        rejects::<T>(&json!([word, example]));
        rejects::<T>(&json!({ word.as_str().unwrap(): example }));
    }
}

#[test]
fn variants_are_strings() {
    names::<Inherit>(&["all", "core", "none"]);
    names::<Network>(&["restricted", "enabled"]);
    names::<Access>(&["read", "write", "deny"]);
    names::<MissingPathBehavior>(&["skip"]);
    names::<SandboxType>(&[
        "none",
        "linuxSeccomp",
        "macosSeatbelt",
        "windowsRestrictedToken",
    ]);
    names::<Signal>(&["interrupt", "terminate", "kill", "hangup", "quit", "stop"]);
    names::<WriteStatus>(&["accepted", "unknownProcess", "stdinClosed", "starting"]);
    names::<Stream>(&["stdout", "stderr", "pty"]);
    names::<ProcessState>(&["starting", "running", "exited", "closed"]);
    names::<TreeKind>(&["cgroup", "subreaper", "group"]);
    names::<Level>(&["namespaces", "landlock"]);
    names::<EnvironmentStatus>(&["ready"]);
    names::<RedirectPolicy>(&["follow", "stop"]);
    names::<Delivery>(&["push", "acked"]);
    names::<EntryKind>(&["directory", "file"]);
    names::<ProxyMode>(&["limited", "full"]);
    names::<DomainAccess>(&["none", "allow", "deny"]);
    names::<UnixSocketAccess>(&["allow", "deny"]);
    names::<DecisionScope>(&["domain", "non_domain"]);
    names::<NetworkVerdict>(&["allow", "deny", "ask"]);
    names::<DecisionSource>(&["baseline_policy", "mode_guard", "proxy_state", "decider"]);
    names::<NetworkProtocol>(&["http", "https_connect", "socks5_tcp", "socks5_udp"]);
}

#[test]
fn tags_are_strings() {
    let files = json!({"type": "restricted", "entries": []});
    kinds::<SpecialPath>(
        "kind",
        &[
            json!({"kind": "root"}),
            json!({"kind": "minimal"}),
            json!({"kind": "project_roots", "subpath": "a"}),
            json!({"kind": "tmpdir"}),
            json!({"kind": "slash_tmp"}),
            json!({"kind": "unknown", "path": ":x"}),
        ],
    );
    kinds::<EntryPath>(
        "type",
        &[
            json!({"type": "path", "path": "file:///a"}),
            json!({"type": "special", "value": {"kind": "root"}}),
            json!({"type": "glob_pattern", "pattern": "*"}),
        ],
    );
    kinds::<FileSystem>("type", &[files.clone(), json!({"type": "unrestricted"})]);
    kinds::<SandboxPermissions>(
        "type",
        &[
            json!({"type": "managed", "file_system": files, "network": "restricted"}),
            json!({"type": "disabled"}),
            json!({"type": "external"}),
        ],
    );
    kinds::<SandboxPolicy>(
        "type",
        &[
            json!({"type": "dangerFullAccess"}),
            json!({"type": "readOnly", "networkAccess": false}),
            json!({"type": "workspaceWrite", "writableRoots": ["/a"], "networkAccess": false,
                   "excludeTmpdirEnvVar": false, "excludeSlashTmp": true}),
            json!({"type": "externalSandbox", "networkAccess": "enabled"}),
        ],
    );
    kinds::<NetworkAnswer>(
        "type",
        &[
            json!({"type": "allow"}),
            json!({"type": "deny", "reason": "r"}),
            json!({"type": "ask"}),
        ],
    );
    kinds::<ConfigSource>(
        "type",
        &[
            json!({"type": "commandLine"}),
            json!({"type": "environment"}),
            json!({"type": "user", "file": "/a"}),
            json!({"type": "system", "file": "/a"}),
        ],
    );
    kinds::<NetworkAnswer>(
        "type",
        &[
            json!({"type": "allow"}),
            json!({"type": "deny", "reason": "a"}),
            json!({"type": "ask", "reason": "a"}),
        ],
    );
}

/// A misread permission would be granted.
#[test]
fn mistyped_permissions_are_rejected() {
    let rejected = |params: Value| {
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        match params.get("argv") {
            Some(_) => parse_params::<StartParams>(Some(&raw))
                .unwrap_err()
                .to_string(),
            None => parse_params::<CommandParams>(Some(&raw))
                .unwrap_err()
                .to_string(),
        }
    };
    let entry = |path: Value, access: Value| {
        let entries = json!([{"path": path, "access": access}]);
        json!({"type": "managed", "file_system": {"type": "restricted", "entries": entries}})
    };
    let root = json!({"type": "special", "value": {"kind": "root"}});
    let mut lines = Vec::new();
    for permissions in [
        json!({"type": 1}),
        json!({"type": "managed", "file_system": {"type": 1}}),
        entry(
            json!({"type": "special", "value": {"kind": 0}}),
            json!("write"),
        ),
        entry(json!({"type": 0, "path": "file:///"}), json!("write")),
        entry(root, json!({"write": null})),
        json!({"type": "managed", "file_system": {"type": "unrestricted"},
               "network": {"enabled": null}}),
    ] {
        let sandbox = json!({"permissions": permissions});
        lines.push(rejected(
            json!({"processId": "p", "argv": [], "cwd": "file:///", "sandbox": sandbox}),
        ));
    }
    let inherit = json!({"inherit": {"all": null}});
    lines.push(rejected(
        json!({"processId": "p", "argv": [], "cwd": "file:///", "envPolicy": inherit}),
    ));
    for policy in [
        json!({"type": 0}),
        json!({"type": "externalSandbox", "networkAccess": {"enabled": null}}),
    ] {
        lines.push(rejected(json!({"command": ["a"], "sandboxPolicy": policy})));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    invalid type: number, expected a string
    invalid type: number, expected a string
    invalid type: number, expected a string
    invalid type: number, expected a string
    invalid type: map, expected a string
    invalid type: map, expected a string
    invalid type: map, expected a string
    invalid type: number, expected a string
    invalid type: map, expected a string
    ");
}

/// An enum with a plain derive would accept numbers.
#[test]
fn all_enums_are_strict() {
    let mut open = ["src", "../types/src"].map(PathBuf::from).to_vec();
    let mut seen = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let inside = path.read_dir().unwrap();
            open.extend(inside.map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for before in text.split("pub enum ").collect::<Vec<_>>().windows(2) {
            let attributes = before[0].rsplit("\n\n").next().unwrap();
            let name = before[1].split_whitespace().next();
            // Clients accept unknown kinds of errors and ends from newer servers. An untagged enum has no
            // names or numbers of variants.
            // `FileOp` is read only from the messages of the file worker, never from a client.
            let is_exempt = matches!(name, Some("ErrorKind" | "EndedBy" | "FileOp"));
            let has_names = !attributes.contains("untagged") && !attributes.contains("from = ");
            let is_tagged = !is_exempt && has_names;
            if attributes.contains("Deserialize") && is_tagged {
                let told = format!("{name:?} in {}", path.display());
                assert!(attributes.contains("remote = \"Self\""), "{told}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 30, "the tests above are about all of them");
}

//! Choices are said in words, and in nothing else.

use std::fmt::Debug;
use std::path::Path;

use outpost_protocol::{
    CommandParams, ConfigSource, Delivery, EnvironmentStatus, FileSystemAccess, FileSystemPath,
    FileSystemPermissions, FsEntryKind, Inherit, MissingPathBehavior, NetworkAccess, Permissions,
    ProcessState, ProcessTrees, RedirectPolicy, SandboxLevel, SandboxPolicy, SandboxType,
    SignalName, SpecialPath, StartParams, StreamName, WriteStatus, parse_params,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Reads its member from a tree in memory, as whatever is in an object with a kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Buffered<T> {
    A { value: T },
}

/// From text, and from a tree.
fn reads<T: DeserializeOwned + Debug>(value: &Value) -> [Option<T>; 2] {
    let buffered = json!({"type": "A", "value": value});
    let buffered: Option<Buffered<T>> = serde_json::from_str(&buffered.to_string()).ok();
    [
        serde_json::from_str(&value.to_string()).ok(),
        buffered.map(|Buffered::A { value }| value),
    ]
}

fn refuses<T: DeserializeOwned + Debug>(value: &Value) {
    for read in reads::<T>(value) {
        assert!(read.is_none(), "{value} is read as {read:?}");
    }
}

/// These are all of its words, and nothing that stands for one is read as one.
fn words<T: DeserializeOwned + Serialize + Debug>(all: &[&str]) {
    for word in all {
        for read in reads::<T>(&json!(word)) {
            assert_eq!(json!(read.unwrap()), json!(word));
        }
        refuses::<T>(&json!({ (*word): null }));
        refuses::<T>(&json!({ (*word): {} }));
        refuses::<T>(&json!([word]));
    }
    for number in 0..=all.len() {
        refuses::<T>(&json!(number));
        refuses::<T>(&json!({ number.to_string(): null }));
    }
    for other in [json!(true), json!(null), json!(""), json!({}), json!([])] {
        refuses::<T>(&other);
    }
}

/// These are examples of all of its kinds.
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
            refuses::<T>(&mistaken);
        }
        refuses::<T>(word);
        refuses::<T>(&json!([word, example]));
        refuses::<T>(&json!({ word.as_str().unwrap(): example }));
    }
}

#[test]
fn a_word_is_a_string() {
    words::<Inherit>(&["all", "core", "none"]);
    words::<NetworkAccess>(&["restricted", "enabled"]);
    words::<FileSystemAccess>(&["read", "write", "deny"]);
    words::<MissingPathBehavior>(&["skip"]);
    words::<SandboxType>(&[
        "none",
        "linuxSeccomp",
        "macosSeatbelt",
        "windowsRestrictedToken",
    ]);
    words::<SignalName>(&["interrupt", "terminate", "kill", "hangup", "quit", "stop"]);
    words::<WriteStatus>(&["accepted", "unknownProcess", "stdinClosed", "starting"]);
    words::<StreamName>(&["stdout", "stderr", "pty"]);
    words::<ProcessState>(&["starting", "running", "exited", "closed"]);
    words::<ProcessTrees>(&["cgroup", "keeper", "group"]);
    words::<SandboxLevel>(&["namespaces", "landlock"]);
    words::<EnvironmentStatus>(&["ready"]);
    words::<RedirectPolicy>(&["follow", "stop"]);
    words::<Delivery>(&["push", "acked"]);
    words::<FsEntryKind>(&["directory", "file"]);
}

#[test]
fn a_kind_is_a_string() {
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
    kinds::<FileSystemPath>(
        "type",
        &[
            json!({"type": "path", "path": "file:///a"}),
            json!({"type": "special", "value": {"kind": "root"}}),
            json!({"type": "glob_pattern", "pattern": "*"}),
        ],
    );
    kinds::<FileSystemPermissions>("type", &[files.clone(), json!({"type": "unrestricted"})]);
    kinds::<Permissions>(
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
    kinds::<ConfigSource>(
        "type",
        &[
            json!({"type": "commandLine"}),
            json!({"type": "environment"}),
            json!({"type": "user", "file": "/a"}),
            json!({"type": "system", "file": "/a"}),
        ],
    );
}

/// Where it matters most: what is misread would be granted.
#[test]
fn what_is_mistyped_grants_nothing() {
    let refused = |params: Value| {
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
        lines.push(refused(
            json!({"processId": "p", "argv": [], "cwd": "file:///", "sandbox": sandbox}),
        ));
    }
    let inherit = json!({"inherit": {"all": null}});
    lines.push(refused(
        json!({"processId": "p", "argv": [], "cwd": "file:///", "envPolicy": inherit}),
    ));
    for policy in [
        json!({"type": 0}),
        json!({"type": "externalSandbox", "networkAccess": {"enabled": null}}),
    ] {
        lines.push(refused(json!({"command": ["a"], "sandboxPolicy": policy})));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    sandbox.permissions.type: invalid type: integer `1`, expected a string at line 1 column 78
    sandbox.permissions: invalid type: integer `1`, expected a string at line 1 column 112
    sandbox.permissions: invalid type: integer `0`, expected a string at line 1 column 199
    sandbox.permissions: invalid type: integer `0`, expected a string at line 1 column 190
    sandbox.permissions: invalid type: map, expected a string at line 1 column 211
    sandbox.permissions: invalid type: map, expected a string at line 1 column 152
    envPolicy.inherit: invalid type: map, expected a string at line 1 column 51
    sandboxPolicy.type: invalid type: integer `0`, expected a string at line 1 column 42
    sandboxPolicy: invalid type: map, expected a string at line 1 column 92
    ");
}

/// An enum that derives how it is read, and nothing else, would be read from numbers again.
#[test]
fn no_choice_is_left_out() {
    let mut open = vec![Path::new("src").to_owned()];
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
            if attributes.contains("Deserialize") {
                let name = before[1].split_whitespace().next();
                let told = format!("{name:?} in {}", path.display());
                assert!(attributes.contains("remote = \"Self\""), "{told}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 21, "the tests above are about all of them");
}

//! Members of params that are unknown or misspelt.

use outpost_protocol::schema::documents;
use outpost_protocol::{Incoming, Method, PresentMembers};
use serde_json::{Value, json};

/// Checks the members of a request, and returns the error.
fn check(method: &str, dialect: Option<&str>, params: &Value, strict: bool) -> Result<(), String> {
    let message = json!({"id": 1, "method": method, "params": params}).to_string();
    let members = members(&message);
    let checked = members.check(method, dialect, strict);
    checked.map_err(|error| error.to_string())
}

fn members(message: &str) -> PresentMembers<'_> {
    match Incoming::parse(message.as_bytes()) {
        Ok(Incoming::Request { members, .. }) => members,
        other => panic!("{other:?}"),
    }
}

#[test]
fn misspelt_members_are_rejected_at_every_level() {
    let permissions = |member: &str, value: Value| {
        let mut permissions = json!({"type": "managed", "file_system": {"type": "unrestricted"}});
        permissions[member] = value;
        json!({"sandbox": {"permissions": permissions}})
    };
    let entry = |entry: Value| {
        json!({"sandbox": {"permissions": {"file_system": {"entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}, entry,
        ]}}}})
    };
    let entries = "sandbox.permissions.file_system.entries";
    for (method, params, error) in [
        (
            "process/start",
            json!({"sandBox": null}),
            r#"unknown member "sandBox"; did you mean "sandbox"?"#.to_owned(),
        ),
        (
            "process/start",
            json!({"envPolicy": {"inherit": "none", "includeonly": []}}),
            r#"envPolicy: unknown member "includeonly"; did you mean "includeOnly"?"#.to_owned(),
        ),
        (
            "process/start",
            json!({"sandbox": {"workspaceRoot": []}}),
            r#"sandbox: unknown member "workspaceRoot"; did you mean "workspaceRoots"?"#.to_owned(),
        ),
        (
            "process/start",
            permissions("netwrk", json!("restricted")),
            r#"sandbox.permissions: unknown member "netwrk"; did you mean "network"?"#.to_owned(),
        ),
        (
            "fs/readFile",
            permissions("fileSystem", json!({})),
            r#"sandbox.permissions: unknown member "fileSystem"; did you mean "file_system"?"#
                .to_owned(),
        ),
        (
            "fs/walk",
            entry(json!({"acess": "deny"})),
            format!(r#"{entries}: unknown member "acess"; did you mean "access"?"#),
        ),
        (
            "fs/remove",
            entry(json!({"path": {"type": "special", "value": {"kind": "x", "subPath": "y"}}})),
            format!(r#"{entries}.path.value: unknown member "subPath"; did you mean "subpath"?"#),
        ),
        (
            "fs/walk",
            json!({"options": {"max_depth": 1}}),
            r#"options: unknown member "max_depth"; did you mean "maxDepth"?"#.to_owned(),
        ),
        (
            "fs/writeFile",
            json!({"followSymLinks": false}),
            r#"unknown member "followSymLinks"; did you mean "followSymlinks"?"#.to_owned(),
        ),
        (
            "http/request",
            json!({"headers": [{"name": "a", "valueEnvVa": "b"}]}),
            r#"headers: unknown member "valueEnvVa"; did you mean "valueEnvVar"?"#.to_owned(),
        ),
        (
            "initialize",
            json!({"takeOver": true}),
            r#"unknown member "takeOver"; did you mean "takeover"?"#.to_owned(),
        ),
        (
            "initialize",
            json!({"capabilities": {"experimentalAPI": true}}),
            r#"capabilities: unknown member "experimentalAPI"; did you mean "experimentalApi"?"#
                .to_owned(),
        ),
        (
            "command/exec",
            json!({"sandboxpolicy": {"type": "readOnly"}}),
            r#"unknown member "sandboxpolicy"; did you mean "sandboxPolicy"?"#.to_owned(),
        ),
        (
            "command/exec",
            json!({"sandboxPolicy": {"type": "workspaceWrite", "writeableRoots": []}}),
            r#"sandboxPolicy: unknown member "writeableRoots"; did you mean "writableRoots"?"#
                .to_owned(),
        ),
        (
            "process/ack",
            json!({"processID": "p"}),
            r#"unknown member "processID"; did you mean "processId"?"#.to_owned(),
        ),
    ] {
        let found = check(method, None, &params, false);
        assert_eq!(found, Err(error), "{method} {params}");
    }
    let v0 = check("command/exec", Some("v0"), &json!({"argv0": "-ls"}), false);
    let error = r#"unknown member "argv0"; did you mean "arg0"?"#;
    assert_eq!(v0, Err(error.to_owned()));
}

#[test]
fn unknown_members_are_ignored_unless_strict() {
    let nested = json!({"sandbox": {"permissions": {"type": "disabled", "later": {"a": 1}}}});
    for (method, params, error) in [
        (
            "process/start",
            json!({"later": {"sandBox": 1}}),
            r#"unknown member "later""#,
        ),
        (
            "process/start",
            nested,
            r#"sandbox.permissions: unknown member "later""#,
        ),
        (
            "process/list",
            json!({"later": 1}),
            r#"unknown member "later""#,
        ),
        (
            "initialize",
            json!({"later": 1}),
            r#"unknown member "later""#,
        ),
    ] {
        assert_eq!(check(method, None, &params, false), Ok(()), "{params}");
        let strict = check(method, None, &params, true);
        assert_eq!(strict, Err(error.to_owned()));
    }
    let unserved = check("no/such", None, &json!({"later": 1}), true);
    assert_eq!(unserved, Ok(()));
}

#[test]
fn maps_accept_any_key() {
    let params = json!({
        "env": {"sandBox": "1", "Env": "2"}, "metadata": {"Sandbox": "3"},
        "envPolicy": {"set": {"Inherit": "4"}},
        "networkProxy": {"proxy": {"domains": {"Mode": "allow"}, "unixSockets": {"Enabled": "deny"}}},
    });
    assert_eq!(check("process/start", None, &params, true), Ok(()));
    let cursors = json!({"resumeFrom": {"clientname": 1}});
    assert_eq!(check("initialize", None, &cursors, true), Ok(()));
    let env = json!({"env": {"Command": null}});
    assert_eq!(check("command/exec", None, &env, true), Ok(()));
}

/// Every member that released clients send, also those that are ignored here.
#[test]
fn released_members_are_accepted() {
    let sandbox = json!({
        "permissions": {
            "type": "managed",
            "file_system": {
                "type": "restricted",
                "entries": [
                    {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": "a"}},
                     "access": "read", "missing_path_behavior": "skip"},
                    {"path": {"type": "special", "value": {"kind": "unknown", "path": ":x"}},
                     "access": "none"},
                    {"path": {"type": "path", "path": "file:///srv"}, "access": "write"},
                    {"path": {"type": "glob_pattern", "pattern": "**"}, "access": "deny"},
                ],
                "glob_scan_max_depth": null,
            },
            "network": "restricted",
        },
        "sandboxOverride": "noOverride", "cwd": "file:///srv", "workspaceRoots": [],
        "policyContext": {"cwd": "file:///srv", "workspaceRoots": []},
        "userHomeDir": "file:///srv", "temporaryDirectories": [],
        "windowsSandboxLevel": "disabled", "windowsSandboxProxySettingsMode": "reconcile",
        "windowsSandboxPrivateDesktop": false, "useLegacyLandlock": false,
    });
    let proxy = json!({
        "proxy": {
            "enabled": true, "enableSocks5": true, "enableSocks5Udp": true,
            "allowUpstreamProxy": true, "dangerouslyAllowAllUnixSockets": false,
            "allowLocalBinding": false, "mode": "full", "domains": {"a.test": "allow"},
            "unixSockets": null, "reviewDomains": [], "credentialMasking": false,
            "credentialProviders": {},
        },
        "auditMetadata": {"conversationId": "1", "model": "m", "slug": "s"},
        "environmentId": "remote", "executionId": "1", "policyDecisionTimeoutMs": 1,
    });
    let start = json!({
        "processId": "p", "metadata": {"threadId": "1", "toolCallId": "c"}, "argv": ["ls"],
        "cwd": "file:///", "shellSnapshot": {"scopeId": "1", "shell": {"name": "sh", "path": "/"}},
        "envPolicy": {"inherit": "all", "ignoreDefaultExcludes": true, "exclude": [], "set": {},
                      "includeOnly": []},
        "env": {}, "tty": false, "pipeStdin": false, "arg0": null, "sandbox": sandbox,
        "enforceManagedNetwork": true,
        "managedNetwork": {"loopbackPorts": [1], "allowLocalBinding": false,
                           "allowUnixSockets": [], "dangerouslyAllowAllUnixSockets": false},
        "networkProxy": proxy, "limits": {"memoryBytes": 1, "cpus": 1}, "network": {"policy": "n"},
        "size": {"rows": 1, "cols": 1}, "timeoutMs": 1, "retainBytes": 1, "killGraceMs": 1,
    });
    let path = json!({"path": "file:///", "sandbox": sandbox, "followSymlinks": true});
    let with = |base: &Value, more: Value| {
        let mut all = base.clone();
        let members = all.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        all
    };
    let command = json!({
        "command": ["ls"], "processId": "p", "cwd": "/", "env": {}, "tty": false,
        "streamStdin": false, "streamStdoutStderr": false, "size": {"rows": 1, "cols": 1},
        "outputBytesCap": 1, "disableOutputCap": false, "timeoutMs": 1, "disableTimeout": false,
        "permissionProfile": null, "limits": {"cpus": 1}, "network": {"policy": "n"},
        "sandboxPolicy": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": false,
                          "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
                          "readOnlyAccess": {"type": "fullAccess"}, "access": null},
    });
    for (method, params) in [
        (
            "initialize",
            json!({"clientName": "x", "resumeSessionId": null}),
        ),
        (
            "initialize",
            json!({
                "clientInfo": {"name": "x", "title": null, "version": "1"},
                "capabilities": {"experimentalApi": true, "optOutNotificationMethods": ["a"],
                                 "requestAttestation": false},
            }),
        ),
        ("process/start", start),
        (
            "process/read",
            json!({"processId": "p", "afterSeq": null, "maxBytes": 1, "waitMs": 1}),
        ),
        (
            "process/write",
            json!({"processId": "p", "chunk": "", "writeId": "w"}),
        ),
        (
            "process/signal",
            json!({"processId": "p", "signal": "interrupt"}),
        ),
        ("process/terminate", json!({"processId": "p"})),
        (
            "fs/open",
            with(&path, json!({"handleId": "h", "mode": "replace"})),
        ),
        (
            "fs/readBlock",
            json!({"handleId": "h", "offset": 0, "len": 1}),
        ),
        (
            "fs/writeBlock",
            json!({"handleId": "h", "offset": 0, "chunk": ""}),
        ),
        ("fs/close", json!({"handleId": "h"})),
        ("fs/readFile", path.clone()),
        ("fs/writeFile", with(&path, json!({"dataBase64": ""}))),
        (
            "fs/createDirectory",
            with(&path, json!({"recursive": null})),
        ),
        ("fs/getMetadata", path.clone()),
        ("fs/canonicalize", path.clone()),
        ("fs/readDirectory", path.clone()),
        (
            "fs/walk",
            with(
                &path,
                json!({"options": {"maxDepth": 1, "maxDirectories": 1, "maxEntries": 1,
                       "followDirectorySymlinks": true, "pruneHiddenDirectories": true}}),
            ),
        ),
        (
            "fs/remove",
            with(&path, json!({"recursive": true, "force": true})),
        ),
        (
            "fs/copy",
            json!({"sourcePath": "file:///", "destinationPath": "file:///", "recursive": false,
                   "sandbox": sandbox}),
        ),
        (
            "http/request",
            json!({"method": "GET", "url": "http://a", "headers": [{"name": "a", "value": "b",
                   "valueEnvVar": null}], "bodyBase64": null, "timeoutMs": null,
                   "redirectPolicy": "follow", "requestId": "r", "streamResponse": false}),
        ),
        ("command/exec", command.clone()),
        (
            "process/spawn",
            with(&command, json!({"processHandle": "h"})),
        ),
        (
            "process/writeStdin",
            json!({"processHandle": "h", "deltaBase64": "", "closeStdin": true}),
        ),
        (
            "process/resizePty",
            json!({"processHandle": "h", "size": {"rows": 1, "cols": 1}}),
        ),
        ("process/kill", json!({"processHandle": "h"})),
        (
            "command/exec/write",
            json!({"processId": "p", "deltaBase64": "", "closeStdin": true}),
        ),
        (
            "command/exec/resize",
            json!({"processId": "p", "size": {"rows": 1, "cols": 1}}),
        ),
        ("command/exec/terminate", json!({"processId": "p"})),
        ("config/read", json!({"includeLayers": false, "cwd": null})),
        ("environment/info", json!({"environmentId": "e"})),
    ] {
        assert_eq!(check(method, None, &params, false), Ok(()), "{method}");
    }
    let v0 = json!({"processId": "1", "argv": [], "cwd": "/", "env": {}, "tty": true,
                    "outputBytesCap": 1, "arg0": null});
    assert_eq!(check("command/exec", Some("v0"), &v0, true), Ok(()));
    let write = json!({"processId": "1", "chunk": ""});
    assert_eq!(
        check("command/exec/write", Some("v0"), &write, true),
        Ok(())
    );
}

/// A client may send the members of one dialect or method to another.
#[test]
fn members_of_other_methods_are_not_misspelt() {
    let documents = documents();
    let members_of = |document: &Value| -> Vec<String> {
        let params = &document["$defs"]["params"];
        let reference = params["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        let params = reference.map_or(params, |name| &params["$defs"][name]);
        let names = params["properties"].as_object().into_iter().flatten();
        names.map(|(name, _)| name.clone()).collect()
    };
    let all: Vec<_> = documents.values().flat_map(members_of).collect();
    assert!(all.contains(&"sandbox".to_owned()) && all.contains(&"argv".to_owned()));
    for method in Method::ALL {
        for dialect in [None, Some("v0")] {
            for name in &all {
                let params = json!({name: null});
                let checked = check(method.name(), dialect, &params, false);
                assert_eq!(checked, Ok(()), "{} {name}", method.name());
            }
        }
    }
}

//! Parsing of sandbox params.

use std::path::Path;

use outpost_protocol::{PathUri, SandboxParams, SandboxPermissions, StartParams, parse_params};
use outpost_types::sandbox::{FileSystem, Network};
use serde_json::{Value, json};

fn sandbox(permissions: Value) -> Result<SandboxParams, String> {
    let params = json!({"processId": "p", "argv": [], "cwd": "file:///",
                        "sandbox": {"permissions": permissions}});
    let raw = serde_json::value::to_raw_value(&params).map_err(|error| error.to_string())?;
    let params: StartParams = parse_params(Some(&raw)).map_err(|error| error.to_string())?;
    Ok(params.sandbox.unwrap())
}

#[test]
fn permissions_parse() {
    for (permissions, expected) in [
        (json!({"type": "disabled"}), SandboxPermissions::Disabled),
        (
            json!({"type": "disabled", "network": 7}),
            SandboxPermissions::Disabled,
        ),
        (
            json!({"type": "external", "network": "enabled"}),
            SandboxPermissions::External,
        ),
        (
            json!({"type": "managed", "file_system": {"type": "restricted", "entries": null}}),
            SandboxPermissions::Managed {
                file_system: FileSystem::restricted(Vec::new()),
                network: Network::Restricted,
            },
        ),
    ] {
        assert_eq!(sandbox(permissions).unwrap().permissions, expected);
    }
}

#[test]
fn entries_round_trip() {
    let entry = |path: Value, access: &str| json!({"path": path, "access": access});
    let special = |value: Value| json!({"type": "special", "value": value});
    let entries = json!([
        entry(special(json!({"kind": "root"})), "read"),
        entry(special(json!({"kind": "minimal"})), "read"),
        entry(
            special(json!({"kind": "project_roots", "subpath": "a/b"})),
            "write"
        ),
        entry(special(json!({"kind": "tmpdir"})), "write"),
        entry(special(json!({"kind": "slash_tmp"})), "write"),
        entry(special(json!({"kind": "unknown", "path": ":x"})), "write"),
        entry(json!({"type": "path", "path": "file:///srv/data"}), "deny"),
        entry(
            json!({"type": "glob_pattern", "pattern": "**/*.pem"}),
            "deny"
        ),
    ]);
    let files = json!({"type": "restricted", "entries": entries, "glob_scan_max_depth": 3});
    let managed = json!({"type": "managed", "file_system": files, "network": "restricted"});
    let understood = sandbox(managed.clone()).unwrap();
    assert_eq!(
        serde_json::to_value(understood.permissions).unwrap(),
        managed
    );
    // The old spellings.
    let old = json!({"type": "managed", "file_system": {"type": "restricted", "entries": [
        entry(special(json!({"kind": "current_working_directory"})), "none"),
    ]}});
    let new = json!({"type": "managed", "file_system": {"type": "restricted", "entries": [
        entry(special(json!({"kind": "project_roots"})), "deny"),
    ]}});
    assert_eq!(sandbox(old), sandbox(new));
}

/// A misread sandbox would not be enforced.
#[test]
fn invalid_sandboxes_are_rejected() {
    let entry = |entry: Value| json!({"type": "managed", "file_system": {"type": "restricted", "entries": [entry]}});
    let special = |kind: &str| json!({"type": "special", "value": {"kind": kind}});
    let lines = [
        json!({"type": "managed"}),
        json!({"type": "managed", "file_system": {"type": "free"}}),
        json!({"type": "managed", "file_system": {"type": "unrestricted"}, "network": "some"}),
        entry(json!({"path": special("home"), "access": "read"})),
        entry(json!({"path": special("unknown"), "access": "read"})),
        entry(json!({"path": special("root"), "access": "execute"})),
        entry(json!({"path": {"type": "path", "path": "/srv"}, "access": "read"})),
        entry(json!({"path": {"type": "other"}, "access": "read"})),
        entry(json!({"path": special("root"), "access": "read", "missing_path_behavior": "make"})),
        entry(json!({"path": ["special", {"kind": "root"}], "access": "read"})),
    ]
    .map(|permissions| sandbox(permissions).unwrap_err());
    insta::assert_snapshot!(lines.join("\n"), @r#"
    missing field `file_system`
    unknown variant `free`, expected `restricted` or `unrestricted`
    unknown variant `some`, expected `restricted` or `enabled`
    unknown variant `home`, expected one of `root`, `minimal`, `current_working_directory`, `project_roots`, `tmpdir`, `slash_tmp`, `unknown`
    missing field `path`
    unknown variant `execute`, expected one of `read`, `write`, `deny`, `none`
    invalid URI: relative URL without a base
    unknown variant `other`, expected one of `path`, `special`, `glob_pattern`
    unknown variant `make`, expected `skip`
    invalid type: sequence, expected an object
    "#);
}

#[test]
fn policy_starts_patterns_in_the_working_directory_by_default() {
    let managed = json!({"type": "managed", "file_system": {"type": "unrestricted"}});
    let params = sandbox(managed).unwrap();
    let cwd = |params: SandboxParams| params.into_policy(Path::new("/elsewhere")).unwrap().cwd;
    assert_eq!(cwd(params.clone()), Path::new("/elsewhere"));
    let own = SandboxParams {
        cwd: Some(PathUri::parse("file:///own").unwrap()),
        ..params
    };
    assert_eq!(cwd(own), Path::new("/own"));
}

#[test]
fn unmanaged_permissions_give_no_policy() {
    for kind in ["disabled", "external"] {
        let params = sandbox(json!({"type": kind})).unwrap();
        assert_eq!(params.into_policy(Path::new("/")), None);
    }
}

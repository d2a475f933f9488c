//! Tests `environmentConfig/read`, `capabilityRoots/discoverV1` and `capabilities/discoverV2`.

use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Server, file_uri};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// A server whose user has a home directory of its own.
async fn with_home() -> (tempfile::TempDir, PathBuf, Server, Client) {
    let folder = tempfile::tempdir().expect("a directory");
    let home = folder.path().canonicalize().expect("a path");
    let server = outpost()
        .env("HOME", home.to_str().expect("UTF-8"))
        .start()
        .await;
    let client = server.client().await;
    (folder, home, server, client)
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

fn read_only(path: &Path) -> Value {
    json!({"permissions": {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "minimal"}}, "access": "read"},
            {"path": {"type": "path", "path": file_uri(path)}, "access": "read"},
        ],
    }}})
}

#[tokio::test]
async fn config_has_selected_keys_of_the_user() {
    let (_folder, home, _server, client) = with_home().await;
    let params = json!({"cwd": "file:///nosuch", "configPaths": [["t"]], "requirementsPaths": []});
    let empty = client.call("environmentConfig/read", params.clone()).await;
    let config = home.join(".codex/config.toml");
    assert_eq!(empty["userHomeDir"], file_uri(&home));
    assert_eq!(empty["codexHomeDir"], file_uri(&home.join(".codex")));
    assert!(empty["hostname"].is_string());
    write(&config, "a = 1\n[t]\nTOKEN = 'sekret'\n");
    let result = client.call("environmentConfig/read", params.clone()).await;
    let layers = result["config"]["layers"].as_array().expect("layers");
    let user = json!({
        "source": format!("user ({})", config.display()),
        "baseDir": file_uri(&home.join(".codex")),
        "toml": "[t]\nTOKEN = \"sekret\"\n",
    });
    assert!(layers.contains(&user), "{result}");
    write(&config, "key\n");
    let error = client.call_fails("environmentConfig/read", params).await;
    let text = format!(
        "failed to load executor-local config: {}:1:",
        config.display()
    );
    assert!(error.message.starts_with(&text), "{error:?}");
    assert_eq!(error.code, -32603);
}

#[tokio::test]
async fn config_needs_paths_with_keys() {
    let (_server, client) = ready().await;
    for (config, text) in [
        (
            json!([]),
            "at least one config or requirements path is required",
        ),
        (
            json!([[]]),
            "TOML paths must contain at least one key segment",
        ),
    ] {
        let params = json!({"cwd": "file:///", "configPaths": config, "requirementsPaths": []});
        let error = client.call_fails("environmentConfig/read", params).await;
        assert_eq!(error.parts(), (-32602, text));
    }
    let error = client.call_fails("environmentConfig/read", json!({})).await;
    assert_eq!(error.parts(), (-32602, "missing field `cwd`"));
}

#[tokio::test]
async fn roots_have_files_of_plugins_and_skills() {
    let (server, client) = ready().await;
    let root = server.dir().join("plug");
    write(&root.join(".codex-plugin/plugin.json"), "{broken");
    write(&root.join(".mcp.json"), "{}");
    write(&root.join("skills/s1/SKILL.md"), "no front matter");
    write(&root.join("skills/s1/agents/openai.yaml"), "x: 1");
    write(&root.join(".hidden/.claude-plugin/plugin.json"), "{}");
    write(&root.join("1/2/3/4/5/6/SKILL.md"), "six");
    write(&root.join("1/2/3/4/5/6/7/SKILL.md"), "seven");
    write(&server.dir().join("outside/SKILL.md"), "outside");
    std::os::unix::fs::symlink(server.dir().join("outside"), root.join("link")).expect("a link");
    let outside = server.dir().join("outside/SKILL.md");
    std::fs::create_dir(root.join("s2")).expect("a directory");
    std::os::unix::fs::symlink(outside, root.join("s2/SKILL.md")).expect("a link");
    let at = |name: &str| file_uri(&root.join(name));
    let file = |name: &str, text: &str| json!({"path": at(name), "contents": text});
    let expected = |sandboxed: bool| {
        json!({
            "id": format!("r{sandboxed}"), "path": file_uri(&root),
            "plugin": {
                "manifest": file(".codex-plugin/plugin.json", "{broken"),
                "mcpConfig": file(".mcp.json", "{}"), "appsConfig": null,
            },
            "skills": [
                {"instructions": file("1/2/3/4/5/6/SKILL.md", "six"), "metadata": null},
                {
                    "instructions": file("skills/s1/SKILL.md", "no front matter"),
                    "metadata": file("skills/s1/agents/openai.yaml", "x: 1"),
                },
            ],
            "namespaceManifests": [
                file(".codex-plugin/plugin.json", "{broken"),
                file(".hidden/.claude-plugin/plugin.json", "{}"),
            ],
            "warnings": [], "error": null,
        })
    };
    let roots = json!([
        {"id": "rfalse", "path": at("")},
        {"id": "rtrue", "path": at(""), "sandbox": read_only(&root)},
    ]);
    let found = client
        .call("capabilityRoots/discoverV1", json!({"roots": roots}))
        .await;
    assert_eq!(found["roots"][0], expected(false));
    assert_eq!(found["roots"][1], expected(true));
}

#[tokio::test]
async fn failed_roots_have_an_error() {
    let (server, client) = ready().await;
    let missing = file_uri(&server.dir().join("nosuch"));
    let file = server.dir().join("file");
    write(&file, "");
    let file = file_uri(&file);
    let roots = json!([{"id": "a", "path": missing}, {"id": "b", "path": file}]);
    let found = client
        .call("capabilityRoots/discoverV1", json!({"roots": roots}))
        .await;
    let text = "No such file or directory (os error 2)";
    let text = format!("failed to inspect capability root {missing}: {text}");
    assert_eq!(found["roots"][0]["error"], text);
    let text = format!("capability root {file} is not a directory");
    assert_eq!(found["roots"][1]["error"], text);
    assert_eq!(found["roots"][1]["skills"], json!([]));
    let none = client
        .call("capabilityRoots/discoverV1", json!({"roots": []}))
        .await;
    assert_eq!(none, json!({"roots": []}));
    let many = vec![json!({"id": "a", "path": missing}); 129];
    let error = client
        .call_fails("capabilityRoots/discoverV1", json!({"roots": many}))
        .await;
    let text = "capability root discovery accepts at most 128 roots";
    assert_eq!(error.parts(), (-32600, text));
}

#[tokio::test]
async fn large_files_of_a_root_are_left_out() {
    let (server, client) = ready().await;
    let root = server.dir().join("root");
    write(&root.join("a/SKILL.md"), &"x".repeat((1 << 20) + 1));
    for n in 0..9 {
        write(&root.join(format!("b{n}/SKILL.md")), &"x".repeat(1 << 20));
    }
    let roots = json!([{"id": "a", "path": file_uri(&root)}]);
    let found = client
        .call("capabilityRoots/discoverV1", json!({"roots": roots}))
        .await;
    let root = &found["roots"][0];
    assert_eq!(root["skills"].as_array().map(Vec::len), Some(8));
    assert_eq!(root["warnings"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn host_has_enabled_plugins_and_skills_of_the_user() {
    let (_folder, home, _server, client) = with_home().await;
    let params = json!({"cwd": "file:///nosuch"});
    let empty = client.call("capabilities/discoverV2", params.clone()).await;
    assert_eq!(empty, json!({"plugins": [], "skills": [], "warnings": []}));
    let codex = home.join(".codex");
    let skill = |name: &str| format!("---\nname: {name}\ndescription: does {name}\n---\n");
    write(&codex.join("skills/hs/SKILL.md"), &skill("hs"));
    write(&codex.join("skills/bad/SKILL.md"), "nothing");
    write(&home.join(".agents/skills/us/SKILL.md"), &skill("us"));
    let config = "[plugins.'pl@mk']\nenabled = true\n[plugins.'off@mk']\nenabled = false\n\
                  [plugins.'../x@mk']\nenabled = true\n";
    write(&codex.join("config.toml"), config);
    let plugin = codex.join("plugins/cache/mk/pl/1.0.0");
    write(
        &plugin.join(".codex-plugin/plugin.json"),
        "{\"name\":\"pl\"}",
    );
    write(&plugin.join("skills/z/SKILL.md"), &skill("z"));
    let found = client.call("capabilities/discoverV2", params).await;
    let first = &found["plugins"][0];
    assert_eq!(found["plugins"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&first["id"], &first["version"]),
        (&json!("pl@mk"), &json!("1.0.0"))
    );
    assert_eq!(first["root"], file_uri(&plugin));
    assert_eq!(first["skills"][0]["name"], "pl:z");
    assert_eq!(first["skills"][0].get("discoveryRoot"), None);
    assert_eq!(
        found["skills"][0],
        json!({
            "name": "hs", "description": "does hs", "shortDescription": null,
            "path": file_uri(&codex.join("skills/hs/SKILL.md")),
            "discoveryRoot": {"id": "codex-home-skills", "path": file_uri(&codex.join("skills"))},
            "dependencies": null, "policy": null,
        })
    );
    assert_eq!(
        found["skills"][1]["discoveryRoot"]["id"],
        "user-agent-skills"
    );
    assert_eq!(found["skills"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["warnings"].as_array().map(Vec::len), Some(1));
    // Sandboxed to one directory, the others are as good as absent.
    let sandbox = read_only(&home.join(".agents"));
    let params = json!({"cwd": "file:///", "sandbox": sandbox});
    let found = client.call("capabilities/discoverV2", params).await;
    assert_eq!(found["plugins"], json!([]));
    assert_eq!(found["skills"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["skills"][0]["name"], "us");
}

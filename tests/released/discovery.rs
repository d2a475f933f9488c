//! `environmentConfig/read`, `capabilityRoots/discoverV1` and `capabilities/discoverV2`.

use std::{fs, path::Path};

use serde_json::json;

use super::Replay;
use crate::outpost;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, text).expect("a file");
}

#[tokio::test]
async fn empty_host_is_answered_as_recorded() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().to_str().expect("UTF-8");
    let server = outpost().env("HOME", home).start().await;
    let mut replay = Replay::exec(&server).await;
    let paths = format!(r#""userHomeDir":"file://{home}","codexHomeDir":"file://{home}/.codex""#);
    replay
        .run(&format!(
            r#"
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[["mcp_servers"]],"requirementsPaths":[["mcp_servers"]]}}
            ← {{{paths},"config":{{"layers":[],"cloudInsertionIndex":0}},"requirements":{{"layers":[],"cloudInsertionIndex":0}}}}
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[],"requirementsPaths":[]}}
            ← -32602 at least one config or requirements path is required
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[[]],"requirementsPaths":[]}}
            ← -32602 TOML paths must contain at least one key segment
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[["a"]]}}
            ← -32602 missing field `requirementsPaths`
            → environmentConfig/read {{"configPaths":[["a"]],"requirementsPaths":[]}}
            ← -32602 missing field `cwd`
            → environmentConfig/read {{"cwd":null,"configPaths":[["a"]],"requirementsPaths":[]}}
            ← -32602 invalid type: null, expected a string
            → capabilityRoots/discoverV1 {{"roots":[]}}
            ← {{"roots":[]}}
            → capabilities/discoverV2 {{"cwd":"{{dir}}/nosuch"}}
            ← {{"plugins":[],"skills":[],"warnings":[]}}
            "#
        ))
        .await;
    let root = json!({"id": "r", "path": "file:///"});
    let params = json!({"roots": vec![root; 129]});
    let error = replay
        .client
        .call_fails("capabilityRoots/discoverV1", params);
    let text = "capability root discovery accepts at most 128 roots";
    assert_eq!(error.await.parts(), (-32600, text));
}

#[tokio::test]
async fn selected_keys_of_the_user_are_rendered_as_recorded() {
    let home = tempfile::tempdir().expect("a directory");
    let config = home.path().join(".codex/config.toml");
    write(
        &config,
        "model = 'm'\n[mcp_servers.a]\ncommand = 'echo'\nargs = ['x']\n[mcp_servers.a.env]\nTOKEN = 'sekret'\n",
    );
    let home = home.path().to_str().expect("UTF-8");
    let server = outpost().env("HOME", home).start().await;
    let mut replay = Replay::exec(&server).await;
    replay
        .run(&format!(
            r#"
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[["mcp_servers"]],"requirementsPaths":[]}}
            ← {{"config":{{"layers":[{{"source":"user ({home}/.codex/config.toml)","baseDir":"file://{home}/.codex","toml":"[mcp_servers.a]\ncommand = \"echo\"\nargs = [\"x\"]\n\n[mcp_servers.a.env]\nTOKEN = \"sekret\"\n"}}],"cloudInsertionIndex":0}},"requirements":{{"layers":[],"cloudInsertionIndex":0}}}}
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[["other"]],"requirementsPaths":[]}}
            ← {{"config":{{"layers":[],"cloudInsertionIndex":0}}}}
            "#
        ))
        .await;
    fs::write(&config, "key\n").expect("a file");
    replay
        .run(&format!(
            r#"
            → environmentConfig/read {{"cwd":"{{dir}}","configPaths":[["a"]],"requirementsPaths":[]}}
            ← -32603 failed to load executor-local config: {home}/.codex/config.toml:1:4: key with no value, expected `=`
            "#
        ))
        .await;
}

#[tokio::test]
async fn roots_are_discovered_as_recorded() {
    let server = outpost().start().await;
    let plug = server.dir().join("plug");
    write(&plug.join(".codex-plugin/plugin.json"), "{broken");
    write(&plug.join(".mcp.json"), "{}");
    write(&plug.join(".app.json"), r#"{"apps":{}}"#);
    write(&plug.join("skills/s1/SKILL.md"), "no front matter");
    write(&plug.join("skills/s1/agents/openai.yaml"), "a: 1");
    write(&plug.join("a/b/c/d/e/f/g/SKILL.md"), "too deep");
    write(&server.dir().join("f"), "");
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → capabilityRoots/discoverV1 {"roots":[{"id":"r1","path":"{dir}/plug"}]}
            ← {"roots":[{"id":"r1","path":"{dir}/plug","plugin":{"manifest":{"path":"{dir}/plug/.codex-plugin/plugin.json","contents":"{broken"},"mcpConfig":{"path":"{dir}/plug/.mcp.json","contents":"{}"},"appsConfig":{"path":"{dir}/plug/.app.json","contents":"{\"apps\":{}}"}},"skills":[{"instructions":{"path":"{dir}/plug/skills/s1/SKILL.md","contents":"no front matter"},"metadata":{"path":"{dir}/plug/skills/s1/agents/openai.yaml","contents":"a: 1"}}],"namespaceManifests":[{"path":"{dir}/plug/.codex-plugin/plugin.json","contents":"{broken"}],"warnings":[],"error":null}]}
            → capabilityRoots/discoverV1 {"roots":[{"id":"r2","path":"{dir}/f"}]}
            ← {"roots":[{"id":"r2","path":"{dir}/f","plugin":null,"skills":[],"namespaceManifests":[],"warnings":[],"error":"capability root {dir}/f is not a directory"}]}
            → capabilityRoots/discoverV1 {"roots":[{"id":"r3","path":"{dir}/no"}]}
            ← {"roots":[{"id":"r3","path":"{dir}/no","plugin":null,"skills":[],"namespaceManifests":[],"warnings":[],"error":"failed to inspect capability root {dir}/no: No such file or directory (os error 2)"}]}
            → capabilityRoots/discoverV1 {"roots":[{"path":"{dir}"}]}
            ← -32602 missing field `id`
            "#,
        )
        .await;
}

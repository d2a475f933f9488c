//! Tests `config/read`.

use serde_json::{Value, json};

use super::{User, text};
use crate::over_each_transport;

#[tokio::test]
async fn config_read_needs_initialize_only() {
    over_each_transport(async |_, client| {
        let error = client.call_fails("config/read", json!({})).await;
        assert_eq!(error.parts(), (-32600, "Not initialized"));
        client.call("initialize", json!({"clientName": "t"})).await;
        let response = client
            .call("config/read", json!({"includeLayers": false}))
            .await;
        assert_eq!(response["config"]["max_sessions"], 4096);
        assert_eq!(response.get("layers"), None);
        let absent = client.call("config/read", Value::Null).await;
        assert_eq!(absent, response);
        let null = client
            .call("config/read", json!({"includeLayers": null}))
            .await;
        assert_eq!(null, response);
    })
    .await;
}

#[tokio::test]
async fn values_have_origins_and_layers_are_optional() {
    let user = User::with_file(
        "retain_bytes = \"64KiB\"\n[shell_environment_policy]\nset = { PASSWORD = \"hush\" }",
    );
    let server = user
        .outpost()
        .env("OUTPOST_MAX_SESSIONS", "12")
        .args(&["--window-bytes", "64KiB"])
        .start()
        .await;
    let client = server.client().await;
    let response = client
        .call("config/read", json!({"includeLayers": true}))
        .await;
    let file = user.file();
    let names = json!([
        {"type": "commandLine"},
        {"type": "environment"},
        {"type": "user", "file": text(&file)},
        {"type": "system", "file": "/etc/outpost/outpost.toml"},
        {"type": "default"},
    ]);
    let layers = response["layers"].as_array().expect("layers");
    let layer_names: Vec<_> = layers.iter().map(|layer| layer["name"].clone()).collect();
    assert_eq!(Value::from(layer_names), names);
    for (key, layer) in [
        ("window_bytes", 0),
        ("listen", 0),
        ("max_sessions", 1),
        ("retain_bytes", 2),
        ("shell_environment_policy.set", 2),
        ("log.level", 4),
    ] {
        let origin = &response["origins"][key];
        assert_eq!(origin["name"], names[layer], "{key}");
        assert_eq!(origin["version"], layers[layer]["version"], "{key}");
    }
    let config = &response["config"];
    assert_eq!(
        (
            &config["window_bytes"],
            &config["max_sessions"],
            &config["retain_bytes"]
        ),
        (&json!("64KiB"), &json!(12), &json!("64KiB"))
    );
    assert_eq!(layers[1]["config"], json!({"max_sessions": 12}));
    let masked = json!({"PASSWORD": "********"});
    assert_eq!(config["shell_environment_policy"]["set"], masked);
    assert_eq!(
        layers[2]["config"]["shell_environment_policy"]["set"],
        masked
    );
    assert!(!response.to_string().contains("hush"), "{response}");
}

#[tokio::test]
async fn invalid_params_are_rejected_in_the_app_servers_words() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        for params in [json!({"includeLayers": "yes"}), json!([true])] {
            let error = client.call_fails("config/read", params).await;
            assert_eq!(error.code, -32600, "{error:?}");
            assert!(error.message.starts_with("Invalid request: "), "{error:?}");
        }
        client.check_alive().await;
    })
    .await;
}

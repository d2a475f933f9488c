//! `config/read`.

use serde_json::{Value, json};

use super::{User, text};
use crate::over_each_transport;

#[tokio::test]
async fn it_answers_after_initialize_and_needs_no_initialized() {
    over_each_transport(async |_, client| {
        let refusal = client.fails("config/read", json!({})).await;
        assert_eq!(refusal.parts(), (-32600, "Not initialized"));
        client.call("initialize", json!({"clientName": "t"})).await;
        let answer = client
            .call("config/read", json!({"includeLayers": false}))
            .await;
        assert_eq!(answer["config"]["max_sessions"], 4096);
        assert_eq!(answer.get("layers"), None);
        let absent = client.call("config/read", Value::Null).await;
        assert_eq!(absent, answer);
        let null = client
            .call("config/read", json!({"includeLayers": null}))
            .await;
        assert_eq!(null, answer);
    })
    .await;
}

#[tokio::test]
async fn every_value_has_its_origin_and_layers_are_told_if_asked_for() {
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
    let answer = client
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
    let layers = answer["layers"].as_array().expect("layers");
    let told: Vec<_> = layers.iter().map(|layer| layer["name"].clone()).collect();
    assert_eq!(Value::from(told), names);
    for (key, layer) in [
        ("window_bytes", 0),
        ("listen", 0),
        ("max_sessions", 1),
        ("retain_bytes", 2),
        ("shell_environment_policy.set", 2),
        ("log.level", 4),
    ] {
        let origin = &answer["origins"][key];
        assert_eq!(origin["name"], names[layer], "{key}");
        assert_eq!(origin["version"], layers[layer]["version"], "{key}");
    }
    let config = &answer["config"];
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
    assert!(!answer.to_string().contains("hush"), "{answer}");
}

#[tokio::test]
async fn params_that_make_no_sense_are_refused_in_the_app_servers_words() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        for params in [json!({"includeLayers": "yes"}), json!([true])] {
            let refusal = client.fails("config/read", params).await;
            assert_eq!(refusal.code, -32600, "{refusal:?}");
            assert!(
                refusal.message.starts_with("Invalid request: "),
                "{refusal:?}"
            );
        }
        client.is_alive().await;
    })
    .await;
}

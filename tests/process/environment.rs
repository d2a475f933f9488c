//! Tests `env` and `envPolicy`: the environment of the child.

use std::collections::BTreeMap;

use outpost_testkit::{Client, Server, Start, TestTag};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// The server's environment, besides the tag.
const SERVER_ENV: &[(&str, &str)] = &[
    ("PATH", "/usr/bin:/bin"),
    ("SHELL", "/bin/sh"),
    ("TMPDIR", "/tmp"),
    ("TEMP", "/tmp"),
    ("TMP", "/tmp"),
    ("HOME", "/"),
    ("LANG", "C"),
    ("LC_ALL", "C"),
    ("LC_CTYPE", "C"),
    ("LOGNAME", "me"),
    ("USER", "me"),
    ("LC_TIME", "C"),
    ("PLAIN", "p"),
    ("AWS_REGION", "r"),
    ("AWS_ACCESS_KEY_ID", "k"),
    ("API_KEY", "k"),
    ("my_secret_thing", "s"),
    ("GITHUB_TOKEN", "t"),
    ("MONKEY", "banana"),
    ("OUTPOST_SESSION_TTL", "31s"),
];

const CORE: &[&str] = &[
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR",
    "USER",
];

async fn server() -> (Server, Client) {
    let mut launch = outpost().env_clear();
    for (name, value) in SERVER_ENV {
        launch = launch.env(name, value);
    }
    let server = launch.start().await;
    let client = server.client().await;
    (server, client)
}

/// The environment of a child with this policy, without the tag.
async fn with_policy(
    client: &Client,
    policy: Value,
    env: &[(&str, &str)],
) -> BTreeMap<String, String> {
    let id = format!("p{}", client.fresh_id());
    let start = Start::new(&id, &["/usr/bin/env", "-0"])
        .env(env)
        .with("envPolicy", policy);
    let text = client.run(start).await.text();
    let pairs = text
        .split_terminator('\0')
        .filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(name, _)| *name != TestTag::VARIABLE)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn names(env: &BTreeMap<String, String>) -> Vec<&str> {
    env.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn environment_without_policy_is_exact() {
    let (_server, client) = ready().await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let env = [("ONLY", "this"), ("EMPTY", ""), ("odd name", "a=b\nc ünï")];
        let start = Start::new(id, &["/usr/bin/env", "-0"])
            .env(&env)
            .with("tty", tty);
        let text = client.run(start).await.text().replace("\r\n", "\n");
        let mut found: Vec<_> = text.split_terminator('\0').collect();
        found.sort_unstable();
        assert_eq!(
            found,
            ["EMPTY=", "ONLY=this", "odd name=a=b\nc ünï"],
            "{id}"
        );
    }
    let start = Start::new("empty", &["/usr/bin/env"]).env(&[]);
    assert_eq!(client.run(start).await.text(), "");
}

#[tokio::test]
async fn step_1_inherits_all_core_or_none() {
    let (_server, client) = server().await;
    let all = with_policy(
        &client,
        json!({"inherit": "all", "ignoreDefaultExcludes": true}),
        &[],
    )
    .await;
    let expected: BTreeMap<_, _> = SERVER_ENV
        .iter()
        // The server's own settings are never inherited.
        .filter(|(name, _)| !name.starts_with("OUTPOST_"))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let without_state = |all: BTreeMap<_, _>| {
        // The testkit gives each server a state directory of its own.
        all.into_iter().filter(|(name, _)| name != "XDG_STATE_HOME")
    };
    assert_eq!(without_state(all).collect::<BTreeMap<_, _>>(), expected);
    let core = with_policy(&client, json!({"inherit": "core"}), &[]).await;
    assert_eq!(names(&core), CORE);
    let none = with_policy(&client, json!({"inherit": "none"}), &[]).await;
    assert_eq!(names(&none), [""; 0]);
}

#[tokio::test]
async fn step_2_drops_likely_secrets_unless_disabled() {
    let (_server, client) = server().await;
    let env = with_policy(&client, json!({"inherit": "all"}), &[]).await;
    for secret in [
        "API_KEY",
        "AWS_ACCESS_KEY_ID",
        "my_secret_thing",
        "GITHUB_TOKEN",
        "MONKEY",
    ] {
        assert!(!env.contains_key(secret), "{secret}");
    }
    assert!(env.contains_key("PLAIN") && env.contains_key("AWS_REGION"));
    let policy = json!({"inherit": "all", "ignoreDefaultExcludes": true});
    let env = with_policy(&client, policy, &[]).await;
    assert!(env.contains_key("GITHUB_TOKEN") && env.contains_key("MONKEY"));
}

#[tokio::test]
async fn step_3_drops_excluded_names() {
    let (_server, client) = server().await;
    let policy = json!({
        "inherit": "all", "ignoreDefaultExcludes": true, "exclude": ["aws_*", "LC_?????", "PLAI"],
    });
    let env = with_policy(&client, policy, &[]).await;
    let gone = ["AWS_REGION", "AWS_ACCESS_KEY_ID", "LC_CTYPE"];
    assert!(gone.iter().all(|name| !env.contains_key(*name)), "{env:?}");
    let kept = ["LC_ALL", "LC_TIME", "PLAIN", "API_KEY"];
    assert!(kept.iter().all(|name| env.contains_key(*name)), "{env:?}");
    let policy = json!({"inherit": "all", "exclude": ["*"]});
    assert_eq!(names(&with_policy(&client, policy, &[]).await), [""; 0]);
}

#[tokio::test]
async fn step_4_sets_variables_regardless_of_exclusion() {
    let (_server, client) = server().await;
    let policy = json!({
        "inherit": "core", "exclude": ["HOME", "MY_KEY"],
        "set": {"HOME": "/mine", "MY_KEY": "kept", "EMPTY": ""},
    });
    let env = with_policy(&client, policy, &[]).await;
    assert_eq!(
        (&*env["HOME"], &*env["MY_KEY"], &*env["EMPTY"]),
        ("/mine", "kept", "")
    );
}

#[tokio::test]
async fn step_5_keeps_only_included_names() {
    let (_server, client) = server().await;
    let policy = json!({
        "inherit": "all", "set": {"A": "1", "B": "2"}, "includeOnly": ["a", "lc_*"],
    });
    let env = with_policy(&client, policy, &[]).await;
    assert_eq!(names(&env), ["A", "LC_ALL", "LC_CTYPE", "LC_TIME"]);
    let policy = json!({"inherit": "none", "set": {"A": "1"}, "includeOnly": []});
    assert_eq!(names(&with_policy(&client, policy, &[]).await), ["A"]);
}

#[tokio::test]
async fn step_6_applies_the_requests_env_last() {
    let (_server, client) = server().await;
    let policy = json!({
        "inherit": "core", "exclude": ["TOP*"], "set": {"A": "set", "HOME": "/set"},
        "includeOnly": ["HOME", "A", "PATH"],
    });
    let env = with_policy(&client, policy, &[("HOME", "/top"), ("TOP_SECRET", "x")]).await;
    let expected = [
        ("A", "set"),
        ("HOME", "/top"),
        ("PATH", "/usr/bin:/bin"),
        ("TOP_SECRET", "x"),
    ];
    let found: Vec<_> = env
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn withheld_variables_are_dropped_even_if_requested() {
    let (_server, client) = server().await;
    let withheld = [
        ("codex_exec_server_noise_auth_token", "t"),
        ("NODE_REPL_AUTH_TOKEN", "t"),
        ("OPENAI_FEDERATION_RULE_ID", "t"),
        ("Openai_Identity_Token_File", "t"),
        ("OPENAI_WORKLOAD_IDENTITY_CONTEXT", "t"),
        ("CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "1"),
        ("OUTPOST_TREES", "auto"),
        ("KEPT", "k"),
    ];
    let set: BTreeMap<_, _> = withheld.into();
    let policy = json!({"inherit": "none", "set": set, "ignoreDefaultExcludes": true});
    for policy in [json!(null), policy] {
        let env = with_policy(&client, policy, &withheld).await;
        assert_eq!(names(&env), ["KEPT"]);
    }
    let start = Start::new("pty", &["/usr/bin/env"])
        .env(&withheld)
        .with("tty", true);
    assert_eq!(client.run(start).await.text().trim(), "KEPT=k");
}

#[tokio::test]
async fn program_lookup_uses_the_policys_path() {
    let (_server, client) = server().await;
    let start = Start::new("p", &["env"]).env(&[]).with(
        "envPolicy",
        json!({"inherit": "none", "set": {"PATH": "/nowhere"}}),
    );
    assert_eq!(client.start_fails(start).await.code, -32603);
    let start = Start::new("p", &["env"])
        .env(&[])
        .with("envPolicy", json!({"inherit": "core"}));
    assert_eq!(client.run(start).await.code(), 0);
}

//! `env` and `envPolicy`: what the child finds in its environment.

use std::collections::BTreeMap;

use outpost_testkit::{Client, Mark, Server, Start};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// What the server has, besides the mark.
const OF_THE_SERVER: &[(&str, &str)] = &[
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
    for (name, value) in OF_THE_SERVER {
        launch = launch.env(name, value);
    }
    let server = launch.start().await;
    let client = server.client().await;
    (server, client)
}

/// The environment of a child with this policy, without the mark.
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
        .filter(|(name, _)| *name != Mark::VARIABLE)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn names(env: &BTreeMap<String, String>) -> Vec<&str> {
    env.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn without_a_policy_the_environment_is_exactly_what_was_sent() {
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
async fn step_1_inherits_all_core_or_nothing() {
    let (_server, client) = server().await;
    let all = with_policy(
        &client,
        json!({"inherit": "all", "ignoreDefaultExcludes": true}),
        &[],
    )
    .await;
    let expected: BTreeMap<_, _> = OF_THE_SERVER
        .iter()
        // What is the server's own is never inherited.
        .filter(|(name, _)| !name.starts_with("OUTPOST_"))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(all, expected);
    let core = with_policy(&client, json!({"inherit": "core"}), &[]).await;
    assert_eq!(names(&core), CORE);
    let none = with_policy(&client, json!({"inherit": "none"}), &[]).await;
    assert_eq!(names(&none), [""; 0]);
}

#[tokio::test]
async fn step_2_drops_what_looks_like_a_secret_unless_told_not_to() {
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
async fn step_3_drops_what_is_excluded() {
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
async fn step_4_sets_and_is_not_excluded() {
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
async fn step_5_keeps_only_what_is_included() {
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
async fn step_6_lays_the_request_on_top_of_it_all() {
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
async fn the_lookup_of_a_program_uses_the_path_that_the_policy_gives() {
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

//! Tests the network policies of `outpost run` and `outpost sandbox`.

use std::path::Path;
use std::process::Output;

use outpost_testkit::TestTag;
use outpost_testkit::http_test_server::{HttpTestServer, page};
use serde_json::{Value, json};

use super::sandbox::without_bubblewrap;
use super::{command, finish, outcome, text};
use crate::outpost;

async fn web_server() -> HttpTestServer {
    HttpTestServer::start(|_| page("200 OK", &[], b"hello")).await
}

/// Prints the status of requests to the servers through the proxy of the environment, and to the first one
/// without it; 000 for none.
fn script(servers: &[&HttpTestServer]) -> String {
    let get = "curl -s -m 10 -o /dev/null -w '%{http_code} '";
    let through = servers
        .iter()
        .map(|server| format!("{get} {}; ", server.url("/")));
    let around = format!("{get} --noproxy '*' {}; true", servers[0].url("/"));
    through.chain([around]).collect()
}

/// An inline table of TOML. No text in it may contain `":`.
fn toml(table: &Value) -> String {
    table.to_string().replace("\":", "\"=")
}

/// Runs the program with network policies in its configuration.
async fn with_policies(policies: &Value, args: &[&str]) -> Output {
    let tag = TestTag::new();
    let child = command(args, &tag)
        .env("OUTPOST_NETWORK_POLICIES", toml(policies))
        .spawn();
    let output = finish(child.expect("spawn")).await;
    tag.gone().await;
    output
}

#[tokio::test]
async fn commands_reach_what_the_flags_allow() {
    let (one, two) = (web_server().await, web_server().await);
    let script = script(&[&one, &two]);
    let (one, two) = (one.address().to_string(), two.address().to_string());
    let policies = json!({
        "one": {"allow": [one]}, "both": {"include": ["one"], "allow": [two]},
    });
    let server = outpost()
        .env("OUTPOST_NETWORK_POLICIES", &toml(&policies))
        .start()
        .await;
    let on = &server.urls()[0];
    for (flags, codes) in [
        (vec!["--allow-host", &*one], "200 403 000"),
        (
            vec!["--allow-host", &one, "--allow-host", &two],
            "200 200 000",
        ),
        (
            vec!["--allow-host", "127.0.0.0/8", "--deny-host", &one],
            "403 200 000",
        ),
        (vec!["--net-policy", "one"], "200 403 000"),
        (vec!["--net-policy", "both"], "200 200 000"),
        (
            vec!["--net-policy", "one", "--allow-host", &two],
            "200 200 000",
        ),
        (
            vec!["--net-policy", "both", "--deny-host", &two],
            "200 403 000",
        ),
        (vec!["--net-policy", "cargo"], "403 403 000"),
    ] {
        for start in [
            vec!["run"],
            vec!["run", "--on", on],
            vec!["sandbox"],
            vec!["sandbox", "-p", ":danger-full-access"],
        ] {
            let command = ["--", "/bin/sh", "-c", &*script];
            let args = [&start[..], &flags, &command].concat();
            let output = with_policies(&policies, &args).await;
            assert_eq!(
                text(&output.stdout).trim(),
                codes,
                "{args:?} {}",
                text(&output.stderr)
            );
            assert_eq!(output.status.code(), Some(0));
        }
    }
}

#[tokio::test]
async fn profile_has_its_network_policy() {
    let (one, two) = (web_server().await, web_server().await);
    let script = script(&[&one, &two]);
    let policies = json!({"one": {"allow": [one.address().to_string()]}});
    let profiles = json!({"managed": {"files": "unrestricted", "network": "one"}});
    let two = two.address().to_string();
    for (flags, codes) in [
        (vec![], "200 403 000"),
        (vec!["--allow-host", &*two], "200 200 000"),
        (vec!["--net-policy", "cargo"], "403 403 000"),
        (vec!["--net"], "200 200 200"),
    ] {
        let tag = TestTag::new();
        let start = ["sandbox", "-p", "managed"];
        let args = [&start[..], &flags, &["--", "/bin/sh", "-c", &script]].concat();
        let child = command(&args, &tag)
            .env("OUTPOST_NETWORK_POLICIES", toml(&policies))
            .env("OUTPOST_SANDBOX_PROFILES", toml(&profiles))
            .spawn();
        let output = finish(child.expect("spawn")).await;
        assert_eq!(
            text(&output.stdout).trim(),
            codes,
            "{flags:?} {}",
            text(&output.stderr)
        );
    }
}

#[tokio::test]
async fn mistakes_are_named_before_anything_runs() {
    for command in ["run", "sandbox"] {
        for (flags, code, message) in [
            (
                &["--allow-host", "https://a.test/"][..],
                2,
                "unsupported domain pattern syntax: https://a.test/; expected a pattern such as example.com",
            ),
            (
                &["--allow-host", "a.test:x"],
                2,
                "invalid port in the rule: a.test:x",
            ),
            (
                &["--allow-host", "10.0.0.1/8"],
                2,
                "invalid network in the rule: 10.0.0.1/8",
            ),
            (&["--deny-host", "a.test"], 2, "--allow-host <PATTERN>"),
            (
                &["--net-policy", "none"],
                1,
                "there is no network policy \"none\"; there are cargo, debian, git-https, git-ssh, npm, pip",
            ),
            (
                &["--allow-host", "a.test", "--deny-host", "*"],
                1,
                "invalid network policy: `*` may be allowed only",
            ),
        ] {
            let args = [&[command][..], flags, &["--", "echo", "ran"]].concat();
            let output = outcome(&args, b"").await;
            let error = text(&output.stderr);
            assert!(error.contains(message), "{args:?}: {error}");
            assert_eq!(output.status.code(), Some(code), "{args:?}");
            assert_eq!(text(&output.stdout), "", "{args:?}");
        }
    }
    let output = outcome(
        &["sandbox", "--net", "--allow-host", "a", "--", "true"],
        b"",
    )
    .await;
    assert_eq!(output.status.code(), Some(2));
    for command in ["run", "sandbox"] {
        let args = [command, "--allow-host", "a.test", "--", "/bin/echo", "ran"];
        let output = without_bubblewrap(&args).await;
        assert_eq!(text(&output.stdout), "");
        let error = text(&output.stderr);
        assert!(error.contains("install the package bubblewrap"), "{error}");
    }
}

#[tokio::test]
async fn explanation_lists_the_rules() {
    let flags = [
        "--net-policy",
        "git-ssh",
        "--allow-host",
        "*.a.test:443",
        "--deny-host",
        "b.a.test",
    ];
    let start = ["sandbox", "-p", ":read-only", "--explain"];
    let output = outcome(&[&start[..], &flags].concat(), b"").await;
    let lines = text(&output.stdout);
    assert!(
        lines.contains(
            "network     what its policy allows, through a proxy\n\
             \x20 allow     bitbucket.org:22\n\
             \x20 allow     codeberg.org:22\n\
             \x20 allow     github.com:22\n\
             \x20 allow     gitlab.com:22\n\
             \x20 allow     *.a.test:443\n\
             \x20 deny      b.a.test\n"
        ),
        "{lines}"
    );
    let output = outcome(&[&start[..], &["--json"], &flags].concat(), b"").await;
    let explanation: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(explanation["network"], "managed");
    assert_eq!(explanation["networkNote"], Value::Null);
    let policy = &explanation["networkPolicy"];
    assert_eq!(policy["allow"][4], "*.a.test:443");
    assert_eq!(policy["deny"], json!(["b.a.test"]));
    assert_eq!(policy["allowLocalBinding"], false);
    let output = outcome(&start, b"").await;
    assert!(!text(&output.stdout).contains("proxy"));
}

/// Serves a git repository, a package of npm and one of PyPI.
async fn registry(repository: &Path) -> HttpTestServer {
    let repository = repository.to_owned();
    HttpTestServer::start(move |request| {
        let path = request.target.split('?').next().unwrap_or_default();
        let html: &[&str] = &["Content-Type: text/html"];
        if let Some(file) = path.strip_prefix("/repo.git/") {
            match std::fs::read(repository.join(file)) {
                Ok(content) => page("200 OK", &[], &content),
                Err(_) => page("404 Not Found", &[], b""),
            }
        } else if path.starts_with("/pypi/") {
            page(
                "200 OK",
                html,
                b"<a href=\"thing-1.2.3.tar.gz\">thing-1.2.3.tar.gz</a>",
            )
        } else {
            let version = json!({"name": "thing", "version": "4.5.6"});
            let package = json!({
                "name": "thing", "dist-tags": {"latest": "4.5.6"}, "versions": {"4.5.6": version},
            });
            let json: &[&str] = &["Content-Type: application/json"];
            page("200 OK", json, package.to_string().as_bytes())
        }
    })
    .await
}

/// git, pip and npm with their own configuration of proxies. Those that are not installed are left out.
#[tokio::test]
async fn programs_find_the_proxy() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().to_str().expect("text");
    let commit = "git init -q work && cd work && git -c user.name=n -c user.email=e commit -q \
                  --allow-empty -m m && git clone -q --bare . ../repo.git && \
                  cd ../repo.git && git update-server-info";
    let made = std::process::Command::new("sh")
        .args(["-c", commit])
        .current_dir(dir.path())
        .env("HOME", home)
        .status();
    assert!(made.expect("sh").success());
    let registry = registry(&dir.path().join("repo.git")).await;
    let allowed = registry.address().to_string();
    let (git, pypi, npm) = (
        format!(
            "git clone -q {} clone && echo cloned",
            registry.url("/repo.git")
        ),
        format!(
            "python3 -m pip index versions --index-url {} thing",
            registry.url("/pypi")
        ),
        format!("npm view --registry {} thing version", registry.url("/")),
    );
    for (program, check, script, printed) in [
        ("git", "git --version", &git, "cloned"),
        ("pip", "python3 -m pip index --help", &pypi, "1.2.3"),
        ("npm", "npm --version", &npm, "4.5.6"),
    ] {
        let is_installed = std::process::Command::new("sh")
            .args(["-c", &format!("{check} >/dev/null 2>&1")])
            .status();
        if !is_installed.expect("sh").success() {
            continue;
        }
        for (host, is_allowed) in [(&*allowed, true), ("other.test", false)] {
            let tag = TestTag::new();
            let flags = ["run", "--cwd", home, "--allow-host", host];
            let args = [&flags[..], &["--", "/bin/sh", "-c", script]].concat();
            let mut command = command(&args, &tag);
            command.env("HOME", home).env("PIP_RETRIES", "0");
            let output = finish(
                command
                    .env("npm_config_fetch_retries", "0")
                    .spawn()
                    .expect("spawn"),
            );
            let output = output.await;
            let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
            let is_printed = stdout.contains(printed);
            assert_eq!(
                is_printed, is_allowed,
                "{program} {host}: {stdout} {stderr}"
            );
        }
    }
}

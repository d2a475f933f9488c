//! Tests hosts by name, tokens and certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outpost_testkit::{CommandOutput, Server, ServerCommand, sh};
use tempfile::TempDir;

use super::new_user;
use crate::auth::certificates::{Authority, secure_port, tls_arguments};
use crate::auth::{new_token, secret_file};
use crate::mcp::time;
use crate::outpost;

/// A server with TLS and a token, and a user with a configuration.
struct Setup {
    server: Server,
    /// The right token.
    token: String,
    /// The fingerprint of the server's certificate.
    fingerprint: String,
    dir: TempDir,
}

impl Setup {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let authority = Authority::new();
        let certificate = authority.for_localhost();
        certificate.write(dir.path());
        secret_file(dir.path(), "ca.pem", &authority.pem());
        let tokens = path("tokens.toml");
        let token = new_token(&tokens, "alice", &[]).await;
        secret_file(dir.path(), "token", &token);
        let tls = tls_arguments(dir.path());
        let server = outpost()
            .listen("wss://127.0.0.1:0")
            .args(&tls.each_ref().map(String::as_str))
            .args(&["--tokens-file", &tokens])
            .start()
            .await;
        Setup {
            server,
            token,
            fingerprint: certificate.fingerprint(),
            dir,
        }
    }

    fn url(&self) -> String {
        format!("wss://localhost:{}", secure_port(&self.server))
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn command(&self) -> ServerCommand {
        outpost()
            .env("OUTPOST_CONFIG", "")
            .env("HOME", &self.path(""))
            .env("XDG_CONFIG_HOME", &self.path("config"))
            .env("XDG_STATE_HOME", &self.path("state"))
    }

    async fn run(&self, args: &[&str]) -> CommandOutput {
        self.command().run(args).await
    }

    /// Runs a command that must succeed, and returns its stdout.
    async fn output(&self, args: &[&str]) -> String {
        succeeded(self.run(args).await)
    }

    /// Adds the server as `build`.
    async fn add(&self) {
        let (token, cert) = (self.path("token"), self.path("ca.pem"));
        let url = self.url();
        let args = [
            "hosts",
            "add",
            "build",
            &url,
            "--token-file",
            &token,
            "--ca",
            &cert,
            "--cwd",
            &self.path(""),
        ];
        self.output(&args).await;
    }
}

fn succeeded(output: CommandOutput) -> String {
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout
}

#[tokio::test]
async fn token_and_certificate_come_from_flags_or_variables() {
    let setup = Setup::new().await;
    let (url, token, cert) = (setup.url(), setup.path("token"), setup.path("ca.pem"));
    let run = ["run", "--on", &url, "--ca", &cert];
    let echo = ["--", "sh", "-c", "echo ${OUTPOST_TOKEN-none}"];
    let with_file = [&run[..], &["--token-file", &token], &echo].concat();
    assert_eq!(setup.output(&with_file).await, "none\n");
    let with_variable = setup.command().env("OUTPOST_TOKEN", &setup.token);
    let output = with_variable.run(&[&run[..], &echo].concat()).await;
    assert_eq!(succeeded(output), "none\n");

    // Without a token the server's text and the remedy are shown.
    let refused = setup.run(&[&run[..], &echo].concat()).await;
    assert_eq!(refused.code, Some(255), "{refused:?}");
    for part in [
        "missing websocket bearer token",
        "OUTPOST_TOKEN or --token-file",
    ] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    // The certificate isn't trusted without the flag.
    let untrusted = ["run", "--on", &url, "--", "true"];
    let untrusted = setup.run(&untrusted).await;
    assert_eq!(untrusted.code, Some(255), "{untrusted:?}");
    assert!(untrusted.stderr.contains("certificate"), "{untrusted:?}");
    // Nothing is sent in clear text.
    let unencrypted = setup.command().env("OUTPOST_TOKEN", &setup.token);
    let unencrypted = unencrypted
        .run(&["run", "--on", "ws://192.0.2.1:7777", "--", "true"])
        .await;
    let message = "refusing to send a token over an unencrypted connection to 192.0.2.1";
    assert!(unencrypted.stderr.contains(message), "{unencrypted:?}");
    // A file that others can read isn't used.
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = setup.run(&with_file).await;
    let remedy = format!("chmod 600 {token}");
    assert!(exposed.stderr.contains(&remedy), "{exposed:?}");
    for output in [&refused, &untrusted, &unencrypted, &exposed] {
        assert!(!output.stderr.contains(&setup.token), "{output:?}");
    }
}

#[tokio::test]
async fn named_host_is_used_by_every_command() {
    let setup = Setup::new().await;
    setup.add().await;
    let listed = setup.output(&["hosts", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["name"], "build");
    assert_eq!(listed[0]["url"], setup.url());
    let table = setup.output(&["hosts", "list"]).await;
    assert!(table.starts_with("NAME   URL"), "{table}");

    // Commands and relative paths use the host's directory.
    let pwd = setup.output(&["run", "--on", "build", "--", "pwd"]).await;
    assert_eq!(
        pwd.trim_end().trim_end_matches('/'),
        setup.path("").trim_end_matches('/')
    );
    secret_file(setup.dir.path(), "data", "content");
    let copy = setup.path("copy");
    setup.output(&["cp", "build:data", &copy]).await;
    assert_eq!(fs::read_to_string(&copy).unwrap(), "content");
    let all = setup.output(&["cat", "build:data", "--on", "local"]).await;
    assert_eq!(all, "content");
    // A name with a colon that is no host is a file.
    setup
        .output(&["cp", "build:data", &setup.path("12:30")])
        .await;

    // OUTPOST_HOST is the default, and `local` overrides it.
    let default = || setup.command().env("OUTPOST_HOST", "build");
    let ls = default().run(&["ls", "."]).await;
    assert!(succeeded(ls).contains("12:30\n"));
    let elsewhere = default().run(&["run", "--on", "local", "--", "pwd"]).await;
    assert!(!succeeded(elsewhere).starts_with(&setup.path("")));
    let id = default()
        .run(&["run", "--detach", "--", "echo", "detached"])
        .await;
    let id = succeeded(id);
    let logs = default().run(&["logs", "-f", id.trim()]).await;
    assert_eq!(succeeded(logs), "detached\n");
    let listed = default().run(&["ps"]).await;
    assert!(succeeded(listed).contains("echo detached"));
    setup.output(&["kill", "--on", "build", id.trim()]).await;

    let tested = setup.output(&["hosts", "test", "build"]).await;
    assert!(tested.contains("version     0."), "{tested}");
    assert!(tested.contains("round trip  "), "{tested}");
    let script = "eval \"$($OUTPOST completions bash)\"; complete_last() { \
                  COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
                  _outpost outpost \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; echo \"${COMPREPLY[@]}\"; }; \
                  outpost() { $OUTPOST \"$@\"; }; complete_last outpost run --on bu; \
                  complete_last outpost hosts remove ''; complete_last outpost hosts test b";
    let completed = std::process::Command::new("bash")
        .args(["-c", script])
        .env("OUTPOST", outpost().binary())
        .env("XDG_CONFIG_HOME", setup.path("config"))
        .output()
        .unwrap();
    let completed = String::from_utf8_lossy(&completed.stdout).into_owned();
    let lines: Vec<_> = completed.lines().collect();
    assert_eq!(lines[0], "build");
    assert!(
        lines[1].ends_with(" build") && lines[2] == "build",
        "{lines:?}"
    );

    setup.output(&["hosts", "remove", "build"]).await;
    let unknown = setup.run(&["run", "--on", "build", "--", "true"]).await;
    let message = "there is no host build; `outpost hosts list`";
    assert!(unknown.stderr.contains(message), "{unknown:?}");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[tokio::test]
async fn failed_test_explains_what_to_do() {
    let setup = Setup::new().await;
    setup.add().await;
    let url = setup.url();
    let untrusted = setup.run(&["hosts", "test", &url]).await;
    assert_eq!(untrusted.code, Some(255), "{untrusted:?}");
    let (_, pin) = untrusted.stderr.split_once("--fingerprint ").unwrap();
    let pin = pin.split_whitespace().next().unwrap();
    assert_eq!(pin, setup.fingerprint);
    let refused = setup
        .run(&["hosts", "test", &url, "--fingerprint", pin])
        .await;
    assert!(refused.stderr.contains("missing websocket"), "{refused:?}");
    let token = setup.path("token");
    let args = [
        "hosts",
        "test",
        &url,
        "--fingerprint",
        pin,
        "--token-file",
        &token,
    ];
    setup.output(&args).await;
    // The pin accepts no other certificate.
    let other = format!("sha256:{}", "00".repeat(32));
    let wrong = setup
        .run(&["hosts", "test", "build", "--fingerprint", &other])
        .await;
    assert!(wrong.stderr.contains(pin), "{wrong:?}");
    let plain = outpost().start().await;
    let plain = plain.urls()[0].replace("ws://", "wss://");
    let cleartext = url.replace("wss://", "ws://");
    for (url, remedy) in [
        (plain, "does not speak TLS at this port"),
        (cleartext, "expects TLS; use wss:// in place of ws://"),
    ] {
        let swapped = outpost().run(&["hosts", "test", &url]).await;
        assert_eq!(swapped.code, Some(255), "{swapped:?}");
        assert!(swapped.stderr.contains(remedy), "{swapped:?}");
    }
    let default = outpost().env("OUTPOST_HOST", "ws://127.0.0.1:1");
    let default = default.run(&["run", "--", "true"]).await;
    assert!(
        default
            .stderr
            .contains("OUTPOST_HOST=ws://127.0.0.1:1: cannot connect"),
        "{default:?}"
    );
    let gone = outpost().run(&["hosts", "test", "ws://127.0.0.1:1"]).await;
    assert!(gone.stderr.contains("nothing listens at"), "{gone:?}");
}

#[tokio::test]
async fn token_reaches_no_child() {
    let user = new_user();
    let script = "printf %s \"${OUTPOST_TOKEN-none}\"; tr '\\0' '\\n' < /proc/$PPID/environ 2>&1 | grep s3cret";
    let local = user.command().env("OUTPOST_TOKEN", "s3cret-token");
    let local = local
        .run(&["run", "--", "sh", "-c", "echo ${OUTPOST_TOKEN-none}"])
        .await;
    assert_eq!(succeeded(local), "none\n");
    // Processes of root can read those of all users.
    if !rustix::process::geteuid().is_root() {
        let local = user.command().env("OUTPOST_TOKEN", "token-in-no-environ");
        let search = "grep -l token-in-no-environ /proc/[0-9]*/environ 2>/dev/null; echo end";
        let local = local.run(&["run", "--", "sh", "-c", search]).await;
        assert_eq!(succeeded(local), "end\n");
    }
    let launched = format!(
        "stdio:{} serve --listen stdio://",
        outpost().binary().display()
    );
    let launched_run = user.command().env("OUTPOST_TOKEN", "s3cret-token");
    let launched_run = launched_run
        .run(&["run", "--on", &launched, "--", "sh", "-c", script])
        .await;
    assert_eq!(launched_run.stdout, "none", "{launched_run:?}");
    let detached = user.command().env("OUTPOST_TOKEN", "s3cret-token");
    let id = succeeded(detached.run(&["run", "-d", "--", "sh", "-c", script]).await);
    let logs = user.output(&["logs", "-f", id.trim()]).await;
    assert_eq!(logs, "none");
    user.stop().await;
}

/// Runs a command on a terminal.
async fn on_a_terminal(setup: &Setup, line: &str) -> String {
    let host = outpost().start().await;
    let client = host.client().await;
    // The server passes no variable of its own kind on.
    let script = format!("export OUTPOST_HOST=build; {line}");
    let start = sh("p", &script).tty().env(&[
        ("OUTPOST", outpost().binary().to_str().unwrap()),
        ("PATH", "/usr/bin:/bin"),
        ("TERM", "dumb"),
        ("XDG_CONFIG_HOME", &setup.path("config")),
        ("XDG_STATE_HOME", &setup.path("state")),
        ("HOME", &setup.path("")),
    ]);
    client.run(start).await.text()
}

#[tokio::test]
async fn default_host_is_printed_on_a_terminal_only() {
    let setup = Setup::new().await;
    setup.add().await;
    let told = "outpost: using build, because OUTPOST_HOST is set";
    for line in [
        "exec $OUTPOST run -- echo hi",
        "exec $OUTPOST ps",
        "exec $OUTPOST ls .",
        "exec $OUTPOST cp :token ./copy",
        // The name is too long to be watched.
        "exec $OUTPOST watch $(printf %300s . | tr ' ' .)",
    ] {
        let printed = on_a_terminal(&setup, &format!("cd $HOME; {line}")).await;
        assert_eq!(printed.matches(told).count(), 1, "{line}: {printed}");
    }
    let local = on_a_terminal(&setup, "exec $OUTPOST run --on local -- echo hi").await;
    assert_eq!(local, "hi\r\n");
    let piped = setup.command().env("OUTPOST_HOST", "build");
    let piped = piped.run(&["run", "--", "echo", "hi"]).await;
    assert_eq!((&*piped.stdout, &*piped.stderr), ("hi\n", ""));
}

#[tokio::test]
async fn mcp_servers_run_on_a_named_host() {
    let setup = Setup::new().await;
    setup.add().await;
    let command = serde_json::to_string(&time()[..1]).unwrap();
    let file = setup.dir.path().join("config/outpost/outpost.toml");
    let mut config = fs::read_to_string(&file).unwrap();
    config.push_str(&format!(
        "\n[mcp_servers.time]\ncommand = {}\nargs = [\"-m\", \"mcp_server_time\"]\nenvironment = \"remote\"\n",
        command.trim_matches(['[', ']'])
    ));
    fs::write(&file, config).unwrap();
    let list = ["mcp", "list", "--json"];
    let listed = setup
        .output(&[&list[..], &["--on", "build"]].concat())
        .await;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["status"], "ready", "{listed}");
    let call = [
        "mcp",
        "call",
        "time",
        "get_current_time",
        r#"{"timezone": "UTC"}"#,
    ];
    let called = setup
        .command()
        .env("OUTPOST_MCP_ON", "build")
        .run(&call)
        .await;
    assert!(succeeded(called).contains("UTC"));
    // Without a host they can't run.
    let nowhere = setup.run(&call).await;
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
}

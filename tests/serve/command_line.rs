//! Tests the command line of the program.

use crate::outpost;

/// Removes trailing white space from each line.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[tokio::test]
async fn help_lists_the_commands() {
    let help = outpost().run(&["--help"]).await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(lines(&help.stdout), @"
    Runs processes for agents, tools and people, on any host

    Usage: outpost <COMMAND>

    Commands:
      serve        Run a server on which clients start and follow processes
      run          Run a command, locally or on a server
      cp           Copy files and directories to, from or between servers
      ls           List directories, locally or on a server
      cat          Print files, local or on a server
      watch        Watch files and directories, and run a command when they change
      sandbox      Run a command in a sandbox
      doctor       Check what this host can enforce, and suggest remedies
      ps           List detached work: processes started with `run --detach`
      logs         Print the retained output of detached work
      attach       Connect this terminal with detached work
      kill         End detached work with its whole process tree
      stop         Stop your own server with everything it runs
      token        Create, list and revoke the named tokens of a server
      completions  Print shell completions
      config       Show the effective configuration and its origins
      schema       Write the protocol as JSON Schema
      hosts        Manage the hosts that --on can name
      mcp          Use MCP servers on any executor
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Examples:
      outpost serve --listen ws://127.0.0.1:7777
      outpost run -- make
      outpost cp -r ./site ws://127.0.0.1:7777:/srv/site
      outpost config show --origins
    ");
}

#[tokio::test]
async fn serve_help_documents_every_flag() {
    let help = outpost().run(&["serve", "--help"]).await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(lines(&help.stdout), @r#"
    Run a server on which clients start and follow processes

    Prints one line with a URL for each socket as soon as it accepts connections; logs go to stderr. On
    SIGTERM or SIGINT, terminates every process, kills the remaining ones after 2s, and exits with 0. A
    second signal kills at once.

    Usage: outpost serve [OPTIONS]

    Options:
          --listen <URL>
              Where to listen: ws://IP:PORT (port 0 picks one), wss://IP:PORT, unix:///PATH or stdio://;
              may be given more than once

              [default: ws://127.0.0.1:0]

          --retain-bytes <SIZE>
              How much of a process's newest output stays readable

              [default: 1MiB]

          --window-bytes <SIZE>
              How far a process may write ahead of a slow client before it is blocked

              [default: 1MiB]

          --memory-budget <SIZE>
              Memory for messages, answers, bodies and kept output of all clients together

              [default: 192MiB]

          --closed-retention <TIME>
              How long a process stays readable after it has closed

              [default: 30s]

          --session-ttl <TIME>
              How long a session outlives its lost connection; then its processes are ended

              [default: 30s]

          --max-session-ttl <TIME>
              The longest session TTL that a client may request, or `unlimited`

              [default: 1day]

          --max-sessions <N>
              Maximum number of sessions; a client beyond that is told to retry later

              [default: 4096]

          --max-processes <N>
              Maximum number of running processes; a start beyond that is told to retry later

              [default: 4096]

          --max-connections <N>
              Maximum number of open connections; further ones get HTTP 503

              [default: 4096]

          --concurrent-requests <N>
              How many processes of one connection start at once; other requests don't count

              [default: 128]

          --allowed-origins <ORIGIN>
              Web origins that may connect, each exactly as in the browser's `Origin` header; may be
              given more than once

          --allowed-hosts <NAME>
              Names in the `Host` header that may be used besides localhost and loopback addresses; may
              be given more than once

          --tls-cert <FILE>
              The certificate chain of wss:// listeners, in PEM encoding

          --tls-key <FILE>
              The private key of that certificate, in PEM encoding; only the server's user may be able
              to read it

          --tls-self-signed[=<BOOL>]
              Create a certificate for wss:// listeners, keep it, and print its fingerprint on stderr

              [possible values: true, false]

          --tls-client-ca <FILE>
              Certificate authorities whose client certificates are accepted, in PEM encoding

          --plaintext-behind-proxy[=<BOOL>]
              Listen on ws:// addresses that aren't loopback, for a proxy that adds TLS; needs
              authentication

              [possible values: true, false]

          --ws-auth <KIND>
              How WebSocket clients authenticate

              Possible values:
              - none:                No token, or a named one of --tokens-file
              - capability-token:    One token for all clients
              - signed-bearer-token: A signed token (JWT) for each client

              [default: none]

          --ws-token-file <FILE>
              The file of the capability token

          --ws-token-sha256 <HEX>
              SHA-256 of the capability token, in place of its file

          --ws-shared-secret-file <FILE>
              The file of the secret that signs tokens with HS256

          --ws-issuer <NAME>
              The issuer that signed tokens must name

          --ws-audience <NAME>
              The audience that signed tokens must name

          --ws-max-clock-skew-seconds <N>
              Tolerated difference between the clocks of the issuer and this host, in seconds

              [default: 30]

          --jwks-file <FILE>
              The file of the public keys that verify signed tokens, a JWK set, in place of a secret

          --tokens-file <FILE>
              The file of named tokens, made by `outpost token new`

          --allow-local-users[=<BOOL>]
              Admit every user of this machine on loopback addresses without a token

              [possible values: true, false]

          --audit-log <FILE|stderr>
              Where to record what clients do, as lines of JSON: a file, or `stderr`

          --audit-required[=<BOOL>]
              Refuse new processes, file changes and HTTP requests while the audit log cannot be written

              [possible values: true, false]

          --trees <KIND>
              How whole process trees are ended; `auto` uses the best method of this host

              Possible values:
              - auto:      A cgroup, else a subreaper, else a group
              - cgroup:    A cgroup for each process
              - subreaper: A small process above each one, which inherits its orphans
              - group:     Process groups; a daemon may escape them

              [default: auto]

          --sandbox-level <LEVEL>
              How processes are sandboxed

              Possible values:
              - namespaces: Namespaces, seccomp and Landlock; rejected where namespaces are missing
              - landlock:   Landlock and seccomp only: weaker isolation

              [default: namespaces]

          --sandbox-default-profile <NAME>
              The profile of a `command/exec` that names none: :workspace, :read-only,
              :danger-full-access, or a profile of the configuration

              [default: :workspace]

          --exit-when-idle <TIME>
              Exit after this long without a connection and without a running or readable process; or
              `never`

              [default: never]

          --log-level <LEVEL>
              Log level: off, error, warn, info, debug, trace, or a filter such as outpost_server=debug

              [default: info]

          --log-format <FORMAT>
              Format of log lines

              Possible values:
              - text: For people
              - json: One JSON object per line

              [default: text]

          --config <FILE>
              The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      outpost serve                                   a free port on loopback
      outpost serve --listen ws://127.0.0.1:7777
      outpost serve --listen unix:///run/user/1000/outpost.sock
      outpost serve --listen stdio://                 one client, on stdin and stdout
      outpost serve --listen wss://0.0.0.0:7443 --tls-self-signed --tokens-file /etc/outpost/tokens.toml

    Every flag can also be set by a variable (OUTPOST_RETAIN_BYTES=4MiB) or in
    outpost.toml (retain_bytes = "4MiB"); `outpost config show` prints the settings.
    "#);
}

#[tokio::test]
async fn version_is_one_line() {
    let version = outpost().run(&["--version"]).await;
    assert_eq!((version.code, version.stderr.as_str()), (Some(0), ""));
    let number = version.stdout.trim_end().strip_prefix("outpost ");
    assert!(
        number.is_some_and(|number| number.split('.').count() == 3),
        "{}",
        version.stdout
    );
}

#[tokio::test]
async fn invalid_value_names_its_flag() {
    let wrong = [
        ("--retain-bytes", "lots"),
        ("--retain-bytes", "-1"),
        ("--window-bytes", "1 elephant"),
        ("--closed-retention", "soon"),
        ("--closed-retention", "-30"),
        ("--max-processes", "0"),
        ("--max-processes", "many"),
        ("--max-connections", "0"),
        ("--max-connections", "-3"),
        ("--concurrent-requests", "0"),
        ("--concurrent-requests", "1.5"),
        ("--log-format", "xml"),
        ("--log-level", "outpost=loud"),
        ("--log-level", "verbose"),
        ("--trees", "none"),
    ];
    for (flag, value) in wrong {
        let output = outpost().run(&["serve", &format!("{flag}={value}")]).await;
        assert!(
            matches!(output.code, Some(1 | 2)),
            "{flag} {value}: {output:?}"
        );
        assert_eq!(output.stdout, "", "{flag} {value}");
        assert!(
            output.stderr.contains(flag),
            "{flag} {value}: {}",
            output.stderr
        );
        assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    }
}

#[tokio::test]
async fn unknown_argument_is_rejected() {
    for args in [
        &["serve", "--no-such-flag"][..],
        &["no-such-command"],
        &["serve", "surplus"],
        &[],
    ] {
        let output = outpost().run(args).await;
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
        assert_eq!(output.stdout, "", "{args:?}");
        assert!(
            output.stderr.contains("Usage"),
            "{args:?}: {}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn sizes_and_times_have_units() {
    let right = [
        ["--retain-bytes", "64KiB"],
        ["--retain-bytes", "65536"],
        ["--window-bytes", "1MiB"],
        ["--closed-retention", "500ms"],
        ["--closed-retention", "1h30m"],
        ["--max-processes", "1000"],
        ["--log-level", "outpost_server=debug"],
    ];
    for args in right {
        let server = outpost().args(&args).start().await;
        server.client().await.check_alive().await;
    }
}

//! What can be said on the command line.

use crate::outpost;

/// The lines of a text, without what is invisible at their ends.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[tokio::test]
async fn help_says_what_there_is() {
    let help = outpost().run(&["--help"]).await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(lines(&help.stdout), @"
    Runs processes for agents, tools and people, on whatever machine it stands on

    Usage: outpost <COMMAND>

    Commands:
      serve        Serve the exec protocol: clients start processes here and follow them
      run          Run a command, here or on a server, as if it were right here
      cp           Copy files and directories, to a server, from one, or here
      ls           List directories, of a server or here
      cat          Show files, of a server or here
      sandbox      Run a command confined: to read, write and reach what it is granted
      doctor       Tell what this host can enforce, and what to do where it can't
      ps           List detached work: what was started with `run --detach`
      logs         Show what detached work has written, as far as it is retained
      attach       Connect this terminal with detached work, where it was left
      kill         End detached work, with everything it has started
      stop         End your own server, with everything it runs
      completions  Print completions for a shell
      config       Show how the server would be configured, and by whom
      schema       Write the protocol down as JSON Schema
      mcp          Use MCP servers, wherever they run
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
async fn help_of_serve_documents_every_flag() {
    let help = outpost().run(&["serve", "--help"]).await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(lines(&help.stdout), @r#"
    Serve the exec protocol: clients start processes here and follow them

    Prints one line with its URL for each socket it listens on, as soon as it accepts connections; logs
    go to stderr. Ends with SIGTERM or SIGINT: asks every process to end, kills what is left after 2s,
    and exits with 0. A second signal ends at once.

    Usage: outpost serve [OPTIONS]

    Options:
          --listen <URL>
              Where to listen: ws://IP:PORT (port 0 picks one), unix:///PATH or stdio://; may be given
              more than once

              [default: ws://127.0.0.1:0]

          --retain-bytes <SIZE>
              How much of a process's newest output stays readable

              [default: 1MiB]

          --window-bytes <SIZE>
              How far a process may write ahead of a client that reads slowly, before it is held back

              [default: 1MiB]

          --closed-retention <TIME>
              How long a process stays readable after it has closed

              [default: 30s]

          --session-ttl <TIME>
              How long a session stays when its connection is lost; then its processes are ended

              [default: 30s]

          --max-session-ttl <TIME>
              The longest such time that a client may ask for, or `unlimited`

              [default: 1day]

          --max-sessions <N>
              How many sessions there may be; a client beyond that is told to retry later

              [default: 4096]

          --max-processes <N>
              How many processes may run at once; a start beyond that is told to retry later

              [default: 4096]

          --max-connections <N>
              How many connections may be open at once; further ones get HTTP 503

              [default: 4096]

          --concurrent-requests <N>
              How many ordinary requests of one connection run at once; control is never counted

              [default: 128]

          --trees <KIND>
              How whole process trees are ended; `auto` takes the best this host has

              Possible values:
              - auto:   A cgroup, else a keeper, else a group
              - cgroup: A cgroup for each process
              - keeper: A small process above each one, which inherits its orphans
              - group:  Process groups; a daemon may escape them

              [default: auto]

          --sandbox-level <LEVEL>
              By what means processes are confined

              Possible values:
              - namespaces: Namespaces, with seccomp and Landlock inside; refused where they are missing
              - landlock:   Landlock and seccomp alone: a weaker promise

              [default: namespaces]

          --sandbox-default-profile <NAME>
              What `command/exec` is confined to if its client doesn't say: :workspace, :read-only,
              :danger-full-access, or a profile of the configuration

              [default: :workspace]

          --exit-when-idle <TIME>
              End when for this long there was no connection, and no process running or still readable;
              or `never`

              [default: never]

          --log-level <LEVEL>
              What to log: off, error, warn, info, debug, trace, or a filter such as
              outpost_server=debug

              [default: info]

          --log-format <FORMAT>
              How to log

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

    Every flag can also be set by a variable (OUTPOST_RETAIN_BYTES=4MiB) or in
    outpost.toml (retain_bytes = "4MiB"); `outpost config show` tells what is in force.
    "#);
}

#[tokio::test]
async fn the_version_is_said_in_one_line() {
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
async fn a_value_that_makes_no_sense_is_refused_with_the_name_of_its_flag() {
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
        let ended = outpost().run(&["serve", &format!("{flag}={value}")]).await;
        assert!(
            matches!(ended.code, Some(1 | 2)),
            "{flag} {value}: {ended:?}"
        );
        assert_eq!(ended.stdout, "", "{flag} {value}");
        assert!(
            ended.stderr.contains(flag),
            "{flag} {value}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn what_is_unknown_is_refused() {
    for args in [
        &["serve", "--no-such-flag"][..],
        &["no-such-command"],
        &["serve", "surplus"],
        &[],
    ] {
        let ended = outpost().run(args).await;
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{args:?}");
        assert!(ended.stderr.contains("Usage"), "{args:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn sizes_and_times_are_in_human_units() {
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
        server.client().await.is_alive().await;
    }
}

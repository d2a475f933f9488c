//! The state of a profile, as its commands find it.

use std::collections::BTreeMap;

use outpost_engine::{EnvPolicy, Inherit, TerminalSize};
use outpost_types::StartParams;

use super::{Fixture, Home};

#[tokio::test(flavor = "multi_thread")]
async fn state_is_restored_without_profile() {
    let home = Home::new(
        r#"
        echo noise; echo noise >&2
        export EXPORTED=$'multi\nline' EMPTY=
        greet() { echo "greet $1 $(cat <<X
here
X
)"; }
        has-dash() { echo dash; }
        inherited() { echo inherited; }; export -f inherited
        alias say='echo said' quoted="echo 'it'"
        shopt -s expand_aliases extglob nullglob
        set -o noclobber -o nounset
        "#,
    );
    let fixture = Fixture::new();
    let command = r#"
        printenv EXPORTED; printenv EMPTY | wc -c
        greet a; has-dash; bash -c inherited
        say b; quoted
        shopt -q extglob && echo extglob; echo *.none end
        (echo x >runs) 2>/dev/null || echo noclobber
        (echo $UNSET) 2>/dev/null || echo nounset
    "#;
    let expected = "multi\nline\n1\ngreet a here\ndash\ninherited\nsaid b\nit\n\
        extglob\nend\nnoclobber\nnounset\n";
    for _ in 0..3 {
        assert_eq!(fixture.output(home.bash(command)).await, expected);
    }
    assert_eq!(home.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bashrc_is_read_unless_bash_env_is_set() {
    let home = Home::new("");
    home.write(".bashrc", "export RC=read; echo noise");
    let fixture = Fixture::new();
    let output = fixture.output(home.bash("echo $RC")).await;
    assert_eq!(output, "read\n");
    home.write(".bash_profile", "export BASH_ENV=/dev/null");
    let other = StartParams {
        cwd: outpost_types::PathUri::from_path("/".as_ref()),
        ..home.bash("echo $RC.")
    };
    assert_eq!(fixture.output(other).await, ".\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_one_run_is_not_restored() {
    let home = Home::new(
        r#"
        export CODEX_THREAD_ID=profile
        PLAIN=1; ARRAY=(1 2); readonly FIXED=1
        trap 'echo trapped' EXIT
        umask 077; ulimit -n 100
        set -e
        unset GIVEN
        cd /
        "#,
    );
    let fixture = Fixture::new();
    let command = r#"
        echo "$PLAIN ${ARRAY[0]} $FIXED $CODEX_THREAD_ID $GIVEN"; umask; ulimit -n | grep -vx 100 >runs-of-limit
        [ "$PWD" = "$HOME" ] && [ "$(pwd)" = "$HOME" ] && echo here
        false; echo "$SHLVL"; ls /proc/self/fd
    "#;
    for _ in 0..2 {
        let mut params = home.bash(command);
        params.env.insert("GIVEN".to_owned(), "given".to_owned());
        let umask = rustix_umask();
        assert_eq!(
            fixture.output(params).await,
            format!("    given\n{umask}\nhere\n2\n0\n1\n2\n3\n")
        );
    }
    assert_eq!(home.runs(), 1);
}

/// Returns the umask that children of this program inherit, as shells print it.
fn rustix_umask() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("read status");
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.expect("the kernel shows it").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_streams_are_as_without_snapshot() {
    let home = Home::new("");
    let fixture = Fixture::new();
    let mut params = home.bash(r#"echo "$0 $1 $2 $#"; cat /proc/$$/comm; cat; echo e >&2; exit 7"#);
    params.argv.extend(["zero", "a b", ""].map(str::to_owned));
    assert_eq!(
        fixture.run(params.clone()).await,
        ("zero a b  2\nbash\ne\n".to_owned(), 7)
    );
    params.arg0 = Some("named".to_owned());
    params.argv[2] = "tr '\\0' ' ' </proc/$$/cmdline | head -c 6; tty; stty size".to_owned();
    params.tty = true;
    params.size = Some(TerminalSize { rows: 5, cols: 6 });
    let output = fixture.output(params).await;
    assert!(
        output.starts_with("named /dev/pts/") && output.ends_with("\r\n5 6\r\n"),
        "{output:?}"
    );
    assert_eq!(home.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_the_client_win_over_the_profile() {
    let home = Home::new(
        "export PATH=/profile:/usr/bin:/bin BY_ENV=profile BY_SET=profile SERVER=profile NEW=profile",
    );
    let fixture = Fixture::new();
    let policy = |set: &[(&str, &str)]| EnvPolicy {
        inherit: Inherit::All,
        set: set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..EnvPolicy::default()
    };
    let command = "echo $PATH $BY_ENV $BY_SET $SERVER $NEW";
    let with = |policy, env: &[(&str, &str)]| {
        let mut params = home.bash(command);
        params.env_policy = Some(policy);
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        params.env.extend(env);
        params
    };
    let profile = "/profile:/usr/bin:/bin";
    let output = fixture.output(with(policy(&[]), &[])).await;
    assert_eq!(
        output,
        format!("{profile} profile profile profile profile\n")
    );
    let set = with(policy(&[("BY_SET", "set")]), &[("BY_ENV", "env")]);
    assert_eq!(
        fixture.output(set).await,
        format!("{profile} env set profile profile\n")
    );
    // With the snapshot of the first.
    let path = with(policy(&[]), &[("PATH", "/request:/bin"), ("SERVER", "env")]);
    assert_eq!(
        fixture.output(path).await,
        "/request:/bin profile profile env profile\n"
    );
    assert_eq!(home.runs(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_one_request_do_not_reach_another() {
    let home = Home::new("export CHANGED=$CHANGED-profile");
    let fixture = Fixture::new();
    let mut first = home.bash("echo $ONCE $CHANGED");
    let env = [("ONCE", "once"), ("CHANGED", "first")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    first.env.extend(env);
    assert_eq!(fixture.output(first).await, "once first\n");
    let second = home.bash("echo $ONCE $CHANGED");
    assert_eq!(fixture.output(second).await, "first-profile\n");
    assert_eq!(home.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn withheld_variables_of_the_profile_do_not_reach_the_command() {
    let home = Home::new(
        "export OUTPOST_SECRET=leak outpost_lower=leak NODE_REPL_AUTH_TOKEN=leak SHOWN=shown",
    );
    let fixture = Fixture::new();
    let output = fixture.output(home.bash("env")).await;
    let variables: BTreeMap<_, _> = output
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    assert_eq!(variables.get("SHOWN"), Some(&"shown"));
    assert!(!output.contains("leak"), "{output}");
}

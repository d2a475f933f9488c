//! Shells other than bash.

use super::{Fixture, Home};

#[tokio::test(flavor = "multi_thread")]
async fn dash_restores_environment_and_options() {
    let home = Home::new("");
    home.write(
        ".profile",
        "echo noise; export A='1\n2'; f() { echo f; }; alias say='echo said'; set -u; set -C; set -e",
    );
    let fixture = Fixture::new();
    let command = r#"
        echo "$0 $1 $A"; (echo $UNSET) 2>/dev/null || echo nounset
        (echo x >runs) 2>/dev/null || echo noclobber
        f 2>/dev/null || say 2>/dev/null || echo neither
        false; ls /proc/self/fd
    "#;
    for _ in 0..2 {
        let mut params = home.shell("sh", "/bin/dash", command);
        params.argv.extend(["zero", "one"].map(str::to_owned));
        assert_eq!(
            fixture.output(params).await,
            "zero one 1\n2\nnounset\nnoclobber\nneither\n0\n1\n2\n3\n"
        );
    }
    assert_eq!(home.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_restores_functions_aliases_and_options() {
    let home = Home::new("");
    home.write(
        ".zprofile",
        r#"
        echo noise
        export A=$'1\n2'
        greet() { echo "greet $1" }
        matches() { [[ $1 == (#i)ABC ]] && echo matches }
        alias say='echo said'
        alias -g GLOBAL='global words'
        setopt extendedglob noclobber nounset shwordsplit
        setopt errexit
        "#,
    );
    home.write(".zshrc", "export RC=read");
    let fixture = Fixture::new();
    let command = r#"
        echo "$0 $1 $A $RC"; greet it's; matches abc; say b; echo GLOBAL
        (echo x >runs) 2>/dev/null || echo noclobber
        (echo $UNSET) 2>/dev/null || echo nounset
        words='a b'; for word in $words; do echo $word; done
        false; echo $SHLVL; ls /proc/self/fd
    "#;
    let expected = "zero one 1\n2 read\ngreet its\nmatches\nsaid b\nglobal words\n\
        noclobber\nnounset\na\nb\n2\n0\n1\n2\n3\n";
    for _ in 0..2 {
        let mut params = home.shell("zsh", "/usr/bin/zsh", &command.replace("it's", r"it\'s"));
        params.argv.extend(["zero", "one"].map(str::to_owned));
        let expected = expected.replace("its", "it's");
        assert_eq!(fixture.output(params).await, expected);
    }
    // One run of each file.
    assert_eq!(home.runs(), 2);
}

//! Which kind of tree one gets, and what is said when it can't be had.

use outpost_process::{KeeperCommand, Spawner, SpawnerOptions, TreeChoice, TreeKind};

use crate::support::*;

fn with(trees: TreeChoice, program: Option<&str>) -> std::io::Result<TreeKind> {
    let keeper = program.map(|program| KeeperCommand {
        program: program.into(),
        args: Vec::new(),
    });
    let options = SpawnerOptions {
        trees,
        keeper,
        ..SpawnerOptions::default()
    };
    Ok(Spawner::new(options)?.tree_kind())
}

#[test]
fn what_was_asked_for_or_nothing() {
    let refused = |program| {
        let error = with(TreeChoice::Keeper, program).expect_err("it is no keeper");
        error.to_string()
    };
    let because = |cause: &str| format!("cannot keep process trees by keeper here: {cause}");
    assert_eq!(refused(None), because("there is no keeper command"));
    let missing = because("No such file or directory (os error 2)");
    assert_eq!(refused(Some("/no/such/program")), missing);
    let silent = because("the keeper does not answer as one");
    assert_eq!(refused(Some("/bin/true")), silent);
    assert_eq!(refused(Some("/bin/cat")), silent);
    assert!(with(TreeChoice::Group, None).is_ok_and(|kind| kind == TreeKind::Group));
}

#[test]
fn one_that_cannot_be_had_is_not_the_best() {
    for program in [None, Some("/no/such/program"), Some("/bin/true")] {
        let kind = with(TreeChoice::Auto, program).expect("groups can always be had");
        assert_ne!(kind, TreeKind::Keeper);
    }
}

#[test]
fn a_keeper_started_by_hand_says_what_it_is() {
    let output = std::process::Command::new(keeper_command().program)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("this is for a server to start"), "{text}");
}

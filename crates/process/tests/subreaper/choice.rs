//! Selection of the kind of process tree.

use outpost_process::{ReaperCommand, Spawner, SpawnerOptions, TreeChoice, TreeKind};

use crate::support::*;

fn with(trees: TreeChoice, program: Option<&str>) -> std::io::Result<TreeKind> {
    let subreaper = program.map(|program| ReaperCommand {
        program: program.into(),
        args: Vec::new(),
    });
    let options = SpawnerOptions {
        trees,
        subreaper,
        ..SpawnerOptions::default()
    };
    Ok(Spawner::new(options)?.tree_kind())
}

#[test]
fn unavailable_kind_is_an_error() {
    let refused = |program| {
        let error = with(TreeChoice::Subreaper, program).expect_err("it is no subreaper");
        error.to_string()
    };
    let because = |cause: &str| format!("cannot use process trees of kind subreaper: {cause}");
    assert_eq!(refused(None), because("no subreaper command is set"));
    let missing = because("No such file or directory (os error 2)");
    assert_eq!(refused(Some("/no/such/program")), missing);
    let silent = because("the subreaper command does not run a subreaper");
    assert_eq!(refused(Some("/bin/true")), silent);
    assert_eq!(refused(Some("/bin/cat")), silent);
    assert!(with(TreeChoice::Group, None).is_ok_and(|kind| kind == TreeKind::Group));
}

#[test]
fn auto_skips_unavailable_subreaper() {
    for program in [None, Some("/no/such/program"), Some("/bin/true")] {
        let kind = with(TreeChoice::Auto, program).expect("groups can always be had");
        assert_ne!(kind, TreeKind::Subreaper);
    }
}

#[test]
fn subreaper_started_by_hand_fails_with_a_message() {
    let output = std::process::Command::new(reaper_command().program)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("started by the server only"), "{text}");
}

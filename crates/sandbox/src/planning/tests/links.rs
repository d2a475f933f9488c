//! Paths that lead through symbolic links.

use super::*;

#[test]
fn a_rule_is_about_where_a_path_leads() {
    let tree = MadeUp::new("/usr/me/project>/srv/p /srv/p/src/ /srv/p/.git/");
    let mut policy = policy(vec![
        special(project_roots(""), Access::Write),
        special(project_roots(".git"), Access::Read).skipping_missing(),
    ]);
    policy.workspace_roots = vec!["/usr/me/project".into()];
    let child = Child {
        cwd: Path::new("/usr/me/project/src"),
        tmpdir: None,
    };
    let plan = plan(&policy, &child, &tree, &Bounds::default()).unwrap();
    assert_eq!(plan.cwd, Path::new("/srv/p/src"));
    assert_eq!(plan.access(Path::new("/srv/p/src")), Access::Write);
    assert_eq!(plan.access(Path::new("/srv/p/.git")), Access::Read);
    assert_eq!(plan.access(Path::new("/usr/me/project")), Access::Deny);
    // The name that people know has to lead there inside as well.
    let told = told(&plan);
    assert_eq!(told.matches("link ").count(), 1, "{told}");
    assert!(told.contains("link /usr/me/project -> /srv/p\n"), "{told}");
}

#[test]
fn links_that_can_be_seen_are_not_made_again() {
    let tree = MadeUp::new("/link>/srv /srv/");
    let plan = planned(&tree, &policy(vec![read("/"), write("/link")]));
    assert_eq!(plan.links, []);
    assert_eq!(plan.access(Path::new("/srv/x")), Access::Write);
}

#[test]
fn a_denied_link_denies_what_it_leads_to() {
    let tree = MadeUp::new("/var/run>../run /run/docker.sock");
    let entries = vec![read("/"), deny("/var/run/docker.sock")];
    let plan = planned(&tree, &policy(entries));
    assert_eq!(plan.access(Path::new("/run/docker.sock")), Access::Deny);
}

#[test]
fn links_that_could_be_replaced_are_not_relied_upon() {
    let tree = MadeUp::new("/ws/out>/home /home/ /ws/a>b /ws/b/");
    for entry in [write("/ws/out"), read("/ws/a"), deny("/ws/a/x")] {
        let (failing, words) = refused(&tree, &policy(vec![write("/ws"), entry]));
        assert_eq!(failing, Failing::Intent);
        assert!(words.contains("symbolic link in a directory that may be written"));
    }
    // Where nothing may be written they stay as they are.
    let plan = planned(&tree, &policy(vec![read("/ws"), write("/ws/out")]));
    assert_eq!(plan.access(Path::new("/home/x")), Access::Write);
}

#[test]
fn links_in_a_circle_are_an_error() {
    let tree = MadeUp::new("/a>/b /b>/a /ws/");
    let (failing, words) = refused(&tree, &policy(vec![read("/a")]));
    assert_eq!(failing, Failing::Preparation);
    assert_eq!(words, "too many symbolic links on the way to /a");
}

#[test]
fn dots_in_a_link_are_resolved_where_it_is() {
    let tree = MadeUp::new("/a/b/link>../../c/./d /c/d/file /ws/");
    let plan = planned(&tree, &policy(vec![read("/a/b/link/file")]));
    assert_eq!(plan.rules[0].path, Path::new("/c/d/file"));
    assert_eq!(plan.rules[0].presence, Presence::File);
}

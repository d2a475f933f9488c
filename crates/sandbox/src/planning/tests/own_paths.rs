//! Paths of Outpost itself.

use super::*;

/// Returns a plan of a server with a configuration in `/home` and a runtime directory in `/tmp`.
fn planned_with_own(tree: &FakeFileSystem, policy: &Policy) -> Result<Plan, PlanError> {
    let own = [
        OwnPath::read_only("/home/.config/outpost".into()),
        OwnPath::read_only("/home/.config/outpost/outpost.toml".into()),
        OwnPath {
            path: "/tmp/outpost-0".into(),
            access: Access::Deny,
            creates: true,
            only_if_present: false,
        },
    ];
    plan_with(&own, tree, policy)
}

fn plan_with(own: &[OwnPath], tree: &FakeFileSystem, policy: &Policy) -> Result<Plan, PlanError> {
    let server = ServerPaths {
        granted: &|| Ok(Arc::default()),
        own,
    };
    crate::planning::plan(policy, &context(), &server, tree, &PlanLimits::default())
}

fn own_rules(tree: &FakeFileSystem, policy: &Policy) -> Vec<String> {
    let plan = planned_with_own(tree, policy).unwrap();
    let summary = summary(&plan);
    let own = summary.lines().filter(|line| line.ends_with(" Own"));
    own.map(str::to_owned).collect()
}

const EXISTING: &str = "/home/.config/outpost/outpost.toml /tmp/outpost-0/server.sock /ws/";

#[test]
fn own_paths_are_limited_only_where_more_is_granted() {
    let tree = FakeFileSystem::new(EXISTING);
    let hidden = "Deny /tmp/outpost-0 dir Own";
    let read_only = "Read /home/.config/outpost dir Own";
    let rules = |entries| own_rules(&tree, &policy(entries));
    assert_eq!(rules(vec![write("/ws")]), [""; 0]);
    assert_eq!(rules(vec![read("/"), write("/ws")]), [hidden]);
    assert_eq!(
        rules(vec![write("/home"), write("/tmp")]),
        [read_only, hidden]
    );
    assert_eq!(rules(vec![write("/")]), [read_only, hidden]);
    let unrestricted = Policy {
        file_system: FileSystem::Unrestricted,
        ..policy(Vec::new())
    };
    assert_eq!(own_rules(&tree, &unrestricted), [read_only, hidden]);
}

#[test]
fn grants_of_own_paths_are_removed() {
    let tree = FakeFileSystem::new(EXISTING);
    for path in [
        "/home/.config/outpost",
        "/home/.config/outpost/outpost.toml",
    ] {
        let plan = planned_with_own(&tree, &policy(vec![read("/"), write(path)])).unwrap();
        assert_ne!(plan.access(Path::new(path)), Access::Write);
        assert!(
            plan.warnings
                .iter()
                .any(|one| matches!(one, crate::Warning::Own(_)))
        );
    }
    let entries = vec![write("/tmp/outpost-0"), write("/tmp/outpost-0/server.sock")];
    let plan = planned_with_own(&tree, &policy(entries)).unwrap();
    for path in ["/tmp/outpost-0", "/tmp/outpost-0/server.sock"] {
        assert_eq!(plan.access(Path::new(path)), Access::Deny);
    }
}

#[test]
fn absent_own_paths_cannot_be_created() {
    let tree = FakeFileSystem::new("/home/ /tmp/ /ws/");
    let rules = own_rules(&tree, &policy(vec![write("/home"), write("/tmp")]));
    assert_eq!(
        rules,
        [
            "Read /home/.config absent Own",
            "Deny /tmp/outpost-0 absent Own"
        ]
    );
    assert_eq!(own_rules(&tree, &policy(vec![read("/")])), [""; 0]);
}

#[test]
fn replaceable_link_to_an_own_path_is_rejected() {
    let tree = "/home/.config>/dots /dots/outpost/outpost.toml /tmp/outpost-0>/ws /ws/";
    let tree = FakeFileSystem::new(tree).foreign("/tmp/outpost-0");
    let error = planned_with_own(&tree, &policy(vec![write("/home")])).unwrap_err();
    assert!(matches!(error, PlanError::LinkInWritable { .. }), "{error}");
    // Another user's link can't be replaced, and must not block all starts.
    let plan = planned_with_own(&tree, &policy(vec![write("/tmp")])).unwrap();
    assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
    // The target is protected, too.
    let rules = own_rules(&tree, &policy(vec![write("/dots")]));
    assert_eq!(rules, ["Read /dots/outpost dir Own"]);
}

#[test]
fn optional_own_path_is_protected_only_while_it_exists() {
    let own = [OwnPath {
        path: "/home/.local/keys".into(),
        access: Access::Deny,
        creates: false,
        only_if_present: true,
    }];
    let plan = |tree| {
        plan_with(
            &own,
            &FakeFileSystem::new(tree),
            &policy(vec![write("/home")]),
        )
    };
    for absent in [
        "/home/ /ws/",
        "/home/.local/ /ws/",
        "/home/.local>/dots /dots/ /ws/",
        "/home/.local>/gone /ws/",
    ] {
        let plan = plan(absent).unwrap();
        assert!(!summary(&plan).contains(" Own"), "{}", summary(&plan));
        assert_eq!(plan.warnings, []);
    }
    let summary = summary(&plan("/home/.local/keys/a /ws/").unwrap());
    assert!(
        summary.contains("Deny /home/.local/keys dir Own"),
        "{summary}"
    );
    let error = plan("/home/.local>/dots /dots/keys/a /ws/").unwrap_err();
    assert!(matches!(error, PlanError::LinkInWritable { .. }), "{error}");
}

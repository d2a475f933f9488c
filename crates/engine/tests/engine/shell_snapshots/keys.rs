//! Which starts share a snapshot.

use std::time::Duration;

use outpost_engine::{Delivery, Inherit, Limits, ResourceLimits};
use outpost_types::{PathUri, StartParams};

use super::{Fixture, Home};
use crate::owner::{open, resume};

#[tokio::test(flavor = "multi_thread")]
async fn key_is_all_but_the_environment_of_the_request() {
    let home = Home::new("");
    let fixture = Fixture::new();
    let base = home.bash("true");
    let other = |change: &dyn Fn(&mut StartParams)| {
        let mut params = base.clone();
        change(&mut params);
        params
    };
    let mut runs = 0;
    for (params, is_new) in [
        (base.clone(), true),
        (base.clone(), false),
        (
            other(&|params| {
                params.env.insert("X".into(), "1".into());
                params.env.insert("PATH".into(), "/bin".into());
                params.argv[2] = ":".into();
                params.argv.push("name".into());
                params.timeout_ms = Some(10_000);
            }),
            false,
        ),
        (
            other(&|params| params.shell_snapshot.as_mut().unwrap().scope_id.push('2')),
            true,
        ),
        (
            other(&|params| params.cwd = PathUri::from_path("/".as_ref())),
            true,
        ),
        (
            other(&|params| params.env_policy.as_mut().unwrap().inherit = Inherit::All),
            true,
        ),
        (other(&|params| params.env_policy = None), true),
        (
            other(&|params| {
                params.limits = Some(ResourceLimits {
                    open_files: Some(100),
                    ..ResourceLimits::default()
                });
            }),
            true,
        ),
        (
            other(&|params| {
                params.argv[0] = "/usr/bin/bash".into();
                params.shell_snapshot.as_mut().unwrap().shell.path = "/usr/bin/bash".into();
            }),
            true,
        ),
        (base.clone(), false),
    ] {
        fixture.output(params.clone()).await;
        runs += usize::from(is_new);
        assert_eq!(home.runs(), runs, "{params:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_snapshot_gives_way() {
    let home = Home::new("");
    let fixture = Fixture::with_limits(Limits {
        shell_snapshots: 3,
        ..Limits::default()
    });
    let run = async |scope: usize| {
        let mut params = home.bash("true");
        params.shell_snapshot.as_mut().unwrap().scope_id = scope.to_string();
        fixture.output(params).await;
        home.runs()
    };
    for scope in 1..=4 {
        assert_eq!(run(scope).await, scope);
    }
    assert_eq!(run(4).await, 4);
    assert_eq!(run(2).await, 4);
    assert_eq!(run(1).await, 5, "it is captured again");
    assert_eq!(run(2).await, 6, "it was the oldest");
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_belong_to_the_session() {
    let home = Home::new("");
    let fixture = Fixture::new();
    fixture.output(home.bash("true")).await;
    let (session, epoch) = open(&fixture.engine, Duration::from_secs(60), Delivery::Push);
    let other = Fixture {
        engine: fixture.engine.clone(),
        session,
    };
    other.output(home.bash("true")).await;
    assert_eq!(home.runs(), 2, "each session has its own");
    other.engine.detach(&other.session, epoch);
    resume(&other.engine, &other.session).expect("it is resumed");
    other.output(home.bash("true")).await;
    fixture.output(home.bash("true")).await;
    assert_eq!(home.runs(), 2, "a resumed session keeps its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_of_other_programs_run_as_requested() {
    let home = Home::new("");
    let fixture = Fixture::new();
    let argv = |argv: &[&str]| StartParams {
        argv: argv.iter().map(|text| (*text).to_owned()).collect(),
        ..home.bash("")
    };
    let options = r#"tr '\0' ' ' </proc/$$/cmdline; exit 0"#;
    for params in [
        argv(&["/bin/bash", "-c", options]),
        argv(&["/bin/bash", "-l", "-c", options]),
        argv(&["/bin/bash", "--login", "-c", options]),
        argv(&["/usr/bin/bash", "-lc", options]),
        argv(&["/bin/sh", "-lc", options]),
    ] {
        let expected = params.argv.join(" ");
        assert_eq!(fixture.output(params).await.trim_end(), expected);
    }
}

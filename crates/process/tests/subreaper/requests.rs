//! Start requests to a subreaper.

use outpost_process::{Exit, SpawnErrorKind};

use crate::support::*;

#[tokio::test]
async fn large_arguments_and_environments_reach_the_child() {
    let spawner = spawner();
    // One string may have 128 KiB, and all of them 2 MiB by default, with a pointer each.
    let long = "x".repeat(100_000);
    let mut large = command(&["sh", "-c", "echo $# ${#Y7} $#", "sh"], PIPES);
    large.argv.extend(vec![long.clone().into(); 9]);
    let variable = |number| (format!("Y{number}").into(), long.clone().into());
    large.env.extend((0..9).map(variable));
    for _ in 0..3 {
        let finished = run(&spawner, large.clone()).await;
        assert_eq!(finished.stdout, "9 100000 9\n");
    }

    large.argv.extend(vec![long.clone().into(); 100]);
    let error = within("the refusal", spawner.spawn(large.clone())).await;
    let error = error.expect_err("no system takes that");
    assert_eq!(error.kind(), SpawnErrorKind::NotExecutable);
    assert_eq!(error.raw_os_error(), Some(7), "{error}");

    large.argv.extend(vec![long.into(); 600]);
    let error = within("the refusal", spawner.spawn(large)).await;
    let error = error.expect_err("not even a subreaper takes that");
    assert_eq!(error.raw_os_error(), Some(7), "{error}");
    let finished = run(&spawner, sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3), "afterwards all is well");
}

#[tokio::test]
async fn relative_working_directory_is_relative_to_the_server() {
    let mut relative = command(&["pwd", "-P"], PIPES);
    relative.cwd = "src".into();
    let finished = run(&spawner(), relative).await;
    let here = std::env::current_dir().expect("a directory");
    let here = here.join("src").canonicalize().expect("it exists");
    assert_eq!(finished.stdout.trim_end(), here.to_str().expect("plain"));
}

#[tokio::test]
async fn open_files_limit_reaches_the_child() {
    let options = outpost_process::SpawnerOptions {
        trees: outpost_process::TreeChoice::Subreaper,
        subreaper: Some(reaper_command()),
        child_open_files: Some((77, 88)),
        ..outpost_process::SpawnerOptions::default()
    };
    let spawner = outpost_process::Spawner::new(options).expect("a spawner starts");
    let finished = run(&spawner, sh("ulimit -Sn; ulimit -Hn", PIPES)).await;
    assert_eq!(finished.stdout, "77\n88\n");
}

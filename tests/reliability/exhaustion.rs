//! When something runs out, the one request that needed it is refused in the system's words, and
//! everybody else goes on.

use outpost_testkit::{Server, Start, sh};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, getuid, prlimit};

use crate::{ready, ready_with};

/// Changes a limit of the running server; gives back what it was.
fn limit(server: &Server, resource: Resource, current: Option<u64>) -> Rlimit {
    let pid = Pid::from_raw(server.pid());
    let maximum = getrlimit(resource).maximum;
    let new = Rlimit { current, maximum };
    prlimit(pid, resource, new).unwrap_or_else(|error| panic!("no limit can be set: {error}"))
}

#[tokio::test]
async fn no_descriptors_for_a_start_refuse_that_start_alone() {
    let (server, client) = ready().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    let used = server.vitals().open_files() as u64;
    let before = limit(&server, Resource::Nofile, Some(used + 1));
    for tty in [false, true] {
        let start = sh("p", "echo hi");
        let refused = client
            .start_fails(if tty { start.tty() } else { start })
            .await;
        assert_eq!(refused.code, -32603);
        assert!(
            refused
                .message
                .contains("Too many open files (os error 24)"),
            "{refused:?}"
        );
    }
    // Everybody else goes on, and what was reserved is free again.
    client.write("cat", "still here\n", "w").await;
    client.sees("cat", "still here").await;
    // A place for the next child may be held ready, but nothing of the ones that failed.
    for number in 0..20 {
        client
            .start_fails(sh(&format!("more{number}"), "echo hi"))
            .await;
    }
    assert!(server.vitals().open_files() as u64 <= used + 2);
    limit(&server, Resource::Nofile, before.current);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.end("cat").await;
}

#[tokio::test]
async fn no_descriptors_for_a_connection_keep_it_waiting_and_nobody_else() {
    let (server, client) = ready().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    let used = server.vitals().open_files() as u64;
    let before = limit(&server, Resource::Nofile, Some(used));
    let url = server.urls()[0].clone();
    let waiting = server.connect_to(&url);
    let working = async {
        for number in 0..20 {
            client
                .write("cat", format!("line {number}\n"), &format!("w{number}"))
                .await;
            client.sees("cat", &format!("line {number}\n")).await;
        }
        limit(&server, Resource::Nofile, before.current);
    };
    let (late, ()) = tokio::join!(waiting, working);
    late.shake_hands().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.end("cat").await;
}

#[tokio::test]
async fn no_processes_refuse_a_start_in_the_systems_words() {
    // Without keepers, which have a limit of their own.
    let (server, client) = ready_with(&["--trees", "group"]).await;
    client.run(sh("first", "echo hi")).await;
    let before = limit(&server, Resource::Nproc, Some(1));
    if getuid().is_root() {
        // The limit isn't for root.
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    } else {
        let refused = client.start_fails(sh("p", "echo hi")).await;
        assert_eq!(refused.code, -32603);
        assert!(
            refused
                .message
                .contains("Resource temporarily unavailable (os error 11)"),
            "{refused:?}"
        );
    }
    limit(&server, Resource::Nproc, before.current);
    assert_eq!(client.run(sh("again", "echo hi")).await.text(), "hi\n");
}

#[tokio::test]
async fn arguments_that_are_too_long_are_refused_in_the_systems_words() {
    let (_server, client) = ready().await;
    let long = "x".repeat(3 << 20);
    let refused = client.start_fails(Start::new("p", &["echo", &long])).await;
    assert_eq!(refused.code, -32603);
    assert!(
        refused
            .message
            .contains("Argument list too long (os error 7)"),
        "{}",
        &refused.message[..200]
    );
    assert!(refused.message.len() < 1000, "and without all of them");
}

#[tokio::test]
async fn no_disk_for_the_log_costs_the_log_and_nothing_else() {
    let server = crate::outpost()
        .args(&["--log-level", "trace"])
        .after("exec 2>/dev/full")
        .start()
        .await;
    let client = server.client().await;
    for number in 0..20 {
        let id = format!("p{number}");
        assert_eq!(client.run(sh(&id, "echo hi")).await.text(), "hi\n");
    }
}

#[tokio::test]
async fn no_disk_for_the_url_is_one_line_and_exit_code_1() {
    let ended = crate::outpost()
        .after("exec >/dev/full")
        .run(&["serve"])
        .await;
    assert_eq!(ended.code, Some(1));
    let said = "outpost: cannot say where we listen: No space left on device (os error 28)\n";
    assert!(ended.stderr.ends_with(said), "{}", ended.stderr);
}

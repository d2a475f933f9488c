//! Tests sandboxed processes on a terminal.

use outpost_testkit::Start;

use super::SandboxDirs;
use crate::ready;

#[tokio::test]
async fn terminal_works_inside() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "test -t 0 && test -t 1 && tty && stty size && echo by name > /dev/tty && \
                  echo by descriptor > /dev/stderr && stty size < /dev/tty";
    let log = client.run(dirs.script("p", script).tty()).await;
    let printed = String::from_utf8_lossy(&log.stream("pty")).into_owned();
    assert_eq!(
        printed,
        "/dev/console\r\n24 80\r\nby name\r\nby descriptor\r\n24 80\r\n",
        "{:?}",
        log.code()
    );
}

#[tokio::test]
async fn interrupt_reaches_the_program_and_its_trap() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
    client.start(dirs.script("p", script).tty()).await;
    client.wait_output("p", "ready").await;
    client.write("p", b"\x03", "w").await;
    assert_eq!(client.closed("p").await.code(), 9);
    client
        .start(dirs.script("q", "echo ready; exec sleep 1000").tty())
        .await;
    client.wait_output("q", "ready").await;
    client.write("q", b"\x03", "w").await;
    assert_eq!(client.closed("q").await.code(), 130);
}

#[tokio::test]
async fn shell_job_control_works() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let start = Start::new("p", &["/bin/bash", "--norc", "-i"])
        .cwd(&dirs.workspace())
        .with("sandbox", dirs.sandbox(&[]))
        .env(&[("PATH", "/usr/bin:/bin"), ("PS1", "> ")])
        .tty();
    client.start(start).await;
    client.wait_output("p", "> ").await;
    // The output differs from the echoed input. The job forks no child: a shell that is stopped
    // while forking would wait for a child that is stopped before exec.
    let job = "sh -c 'echo begun $((1 + 1)); exec sed -u y/ab/yz/'\n";
    client.write("p", job, "1").await;
    client.wait_output("p", "begun 2").await;
    client.write("p", b"aabb\n", "2").await;
    client.wait_output("p", "yyzz").await;
    client.write("p", b"\x1a", "3").await;
    client.wait_output("p", "Stopped").await;
    client.write("p", b"fg\n", "4").await;
    client.write("p", b"abab\n", "5").await;
    client.wait_output("p", "yzyz").await;
    client.write("p", b"\x03", "6").await;
    // The line discipline may discard input typed together with an interrupt.
    client.wait_output("p", "^C\r\n> ").await;
    client.write("p", b"exit 5\n", "7").await;
    assert_eq!(client.closed("p").await.code(), 5);
}

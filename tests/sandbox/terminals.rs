//! A terminal inside.

use outpost_testkit::Start;

use super::Site;
use crate::ready;

#[tokio::test]
async fn a_terminal_is_one() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "test -t 0 && test -t 1 && tty && stty size && echo by name > /dev/tty && \
                  echo by descriptor > /dev/stderr && stty size < /dev/tty";
    let story = client.run(site.script("p", script).tty()).await;
    let said = String::from_utf8_lossy(&story.stream("pty")).into_owned();
    assert_eq!(
        said,
        "/dev/console\r\n24 80\r\nby name\r\nby descriptor\r\n24 80\r\n",
        "{:?}",
        story.code()
    );
}

#[tokio::test]
async fn an_interrupt_reaches_the_program_and_its_trap() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
    client.start(site.script("p", script).tty()).await;
    client.sees("p", "ready").await;
    client.write("p", b"\x03", "w").await;
    assert_eq!(client.closed("p").await.code(), 9);
    client
        .start(site.script("q", "echo ready; exec sleep 1000").tty())
        .await;
    client.sees("q", "ready").await;
    client.write("q", b"\x03", "w").await;
    assert_eq!(client.closed("q").await.code(), 130);
}

#[tokio::test]
async fn a_shell_controls_its_jobs() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let start = Start::new("p", &["/bin/bash", "--norc", "-i"])
        .cwd(&site.workspace())
        .with("sandbox", site.sandbox(&[]))
        .env(&[("PATH", "/usr/bin:/bin"), ("PS1", "> ")])
        .tty();
    client.start(start).await;
    client.sees("p", "> ").await;
    // What it says is no echo of what was typed. It starts nobody: a shell that is stopped just then
    // waits for a child that is stopped before it is one.
    let job = "sh -c 'echo begun $((1 + 1)); exec sed -u y/ab/yz/'\n";
    client.write("p", job, "1").await;
    client.sees("p", "begun 2").await;
    client.write("p", b"aabb\n", "2").await;
    client.sees("p", "yyzz").await;
    client.write("p", b"\x1a", "3").await;
    client.sees("p", "Stopped").await;
    client.write("p", b"fg\n", "4").await;
    client.write("p", b"abab\n", "5").await;
    client.sees("p", "yzyz").await;
    client.write("p", b"\x03", "6").await;
    // What is typed along with an interrupt may be thrown away.
    client.sees("p", "^C\r\n> ").await;
    client.write("p", b"exit 5\n", "7").await;
    assert_eq!(client.closed("p").await.code(), 5);
}

//! Draining output at the exit.

use outpost_process::{Child, Exit, ReadOutcome, Stdio};

use crate::support::*;

#[tokio::test]
async fn drain_reads_pipe_before_runtime_reports_readiness() {
    let mut child = start(&spawner(), sh("seq 1 9999; echo last words", PIPES)).await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    let drained = child.outputs[0].drain().concat();
    let text = String::from_utf8_lossy(&drained);
    assert!(text.starts_with("1\n2\n"), "{text}");
    assert!(text.ends_with("9999\nlast words\n"), "{text}");
    assert_eq!(child.outputs[0].drain().len(), 0);
    let rest = within("the end", read_to_end(&mut child.outputs[0])).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn drain_reads_terminal() {
    for _ in 0..20 {
        let mut child = start(&spawner(), sh("seq 1 500; echo last words", PTY)).await;
        assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
        let drained = child.outputs[0].drain().concat();
        let text = String::from_utf8_lossy(&drained);
        assert!(text.ends_with("500\r\nlast words\r\n"), "{text:?}");
    }
}

#[tokio::test]
async fn drain_of_silent_child_is_empty() {
    for stdio in [PIPES_AND_STDIN, PTY] {
        let mut child = start(&spawner(), command(&["cat"], stdio)).await;
        assert_eq!(child.outputs[0].drain().len(), 0, "{stdio:?}");
        assert_eq!(child.outputs[0].read(10), ReadOutcome::Empty);
    }
}

/// Reads until the exit is known, then drains, and returns all bytes until then.
async fn read_until_exit(child: &mut Child) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            tokio::select! {
                biased;
                exit = child.exit.wait() => break exit,
                ready = child.outputs[0].readable() => {
                    ready.expect("the runtime works");
                    match child.outputs[0].read(64 * 1024) {
                        ReadOutcome::Data(data) => bytes.extend_from_slice(&data),
                        ReadOutcome::Empty => {}
                        ReadOutcome::End => break child.exit.wait().await,
                    }
                }
            }
        }
    };
    assert_eq!(within("the exit", reading).await, Exit::Code(0));
    let drained = child.outputs[0].drain().concat();
    bytes.extend_from_slice(&drained);
    (bytes, drained.len())
}

async fn drain_with_flooding_grandchild(stdio: Stdio) {
    for _ in 0..5 {
        // On a terminal the exit of the session leader sends SIGHUP to the others.
        let script = "trap '' HUP; yes & echo the last; echo words; exit 0";
        let mut child = start(&spawner(), sh(script, stdio)).await;
        let (bytes, drained) = read_until_exit(&mut child).await;
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("words"), "{} bytes", bytes.len());
        assert!(drained <= 1024 * 1024 + 4096, "{drained}");
        // The grandchild is still writing.
        let more = |bytes: &[u8]| bytes.len() > 256 * 1024;
        within("more", read_until(&mut child.outputs[0], more)).await;
        child.control.kill_tree().expect("it is killed");
        within("the end", read_to_end(&mut child.outputs[0])).await;
    }
}

#[tokio::test]
async fn drain_ends_despite_flooding_grandchild_on_pipes() {
    drain_with_flooding_grandchild(PIPES).await;
}

#[tokio::test]
async fn drain_ends_despite_flooding_grandchild_on_a_terminal() {
    drain_with_flooding_grandchild(PTY).await;
}

//! Measures the time from start to exit of a short command, compared with `posix_spawn`.
//!
//! `cargo run --release -p outpost-process --example oneshot [ROUNDS [OPEN]]`, where OPEN is the
//! number of descriptors that the program holds open, as a server with many processes does.
#![expect(unsafe_code, reason = "calls posix_spawn")]
#![expect(clippy::print_stdout, reason = "prints measurements")]

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::ptr;
use std::time::{Duration, Instant};

use outpost_process::{
    Command, Exit, ReaperCommand, Spawner, SpawnerOptions, Stdio, TreeChoice, subreaper,
};

const TRUE: &CStr = c"/usr/bin/true";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<ExitCode> {
    // Before the runtime starts: the subreaper factory must be single-threaded.
    if std::env::args()
        .nth(1)
        .is_some_and(|word| word == "subreaper")
    {
        return Ok(subreaper::main());
    }
    tokio::runtime::Runtime::new()?.block_on(measure())?;
    Ok(ExitCode::SUCCESS)
}

async fn measure() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(2000), |rounds| rounds.parse())?;
    let open: usize = arguments.next().map_or(Ok(0), |open| open.parse())?;
    let of = |trees| {
        let options = SpawnerOptions {
            trees,
            subreaper: Some(ReaperCommand {
                program: "/proc/self/exe".into(),
                args: vec!["subreaper".into()],
            }),
            ..SpawnerOptions::default()
        };
        Spawner::new(options)
    };
    let kinds = [TreeChoice::Cgroup, TreeChoice::Subreaper, TreeChoice::Group];
    let spawners: Vec<_> = kinds.into_iter().filter_map(|kind| of(kind).ok()).collect();
    // Opened after the spawners, as a server opens descriptors over time.
    let _held = hold(open)?;
    // Interleaved, so that other load on the machine affects all alike.
    let mut bare = Vec::new();
    let mut ours = vec![Vec::new(); spawners.len()];
    for round in 0..rounds + rounds / 10 {
        let warm = round >= rounds / 10;
        bare.extend(Some(once_bare()?).filter(|_| warm));
        for (spawner, times) in spawners.iter().zip(&mut ours) {
            times.extend(Some(once(spawner).await?).filter(|_| warm));
        }
    }
    let base = show("posix_spawn + waitpid", &mut bare, None);
    for (spawner, times) in spawners.iter().zip(&mut ours) {
        show(&spawner.tree_kind().to_string(), times, Some(base));
    }
    for spawner in &spawners {
        let (many, mine) = (1000, many(spawner, 1000, 32).await?);
        println!(
            "{many} with 32 in flight, {}: {mine:?}",
            spawner.tree_kind()
        );
    }
    Ok(())
}

fn hold(open: usize) -> io::Result<Vec<File>> {
    (0..open).map(|_| File::open("/dev/null")).collect()
}

async fn once(spawner: &Spawner) -> Outcome<Duration> {
    let start = Instant::now();
    let mut child = spawner.spawn(command()).await?;
    let exit = child.exit.wait().await;
    let time = start.elapsed();
    child.exit.reap();
    assert_eq!(exit, Exit::Code(0));
    Ok(time)
}

async fn many(spawner: &Spawner, count: usize, at_once: usize) -> Outcome<Duration> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let spawner = spawner.clone();
        tasks.spawn(async move {
            for _ in 0..count / at_once {
                let spawned = spawner.spawn(command()).await;
                let Ok(mut child) = spawned else {
                    return false;
                };
                child.exit.wait().await;
                child.exit.reap();
                child.control.release_tree();
            }
            true
        });
    }
    while let Some(done) = tasks.join_next().await {
        assert!(done?, "a start failed");
    }
    Ok(start.elapsed())
}

fn command() -> Command {
    Command {
        argv: vec!["/usr/bin/true".into()],
        arg0: None,
        cwd: "/".into(),
        env: Vec::new(),
        stdio: Stdio::Pipes { stdin: false },
        wrapper: None,
    }
}

fn once_bare() -> io::Result<Duration> {
    let start = Instant::now();
    let mut pid = 0;
    let argv: [*mut c_char; 2] = [TRUE.as_ptr().cast_mut(), ptr::null_mut()];
    let env: [*mut c_char; 1] = [ptr::null_mut()];
    // SAFETY: all strings and arrays are terminated and live; no attributes, no file actions.
    let errno = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            TRUE.as_ptr(),
            ptr::null(),
            ptr::null(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status is valid for writes.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    Ok(start.elapsed())
}

fn show(name: &str, times: &mut [Duration], base: Option<Duration>) -> Duration {
    times.sort_unstable();
    let median = times[times.len() / 2];
    let p99 = times[times.len() * 99 / 100];
    let ratio = base.map_or(1.0, |base| median.as_secs_f64() / base.as_secs_f64());
    println!("{name:24} p50 {median:>10.1?}  p99 {p99:>10.1?}  {ratio:.2} x");
    median
}

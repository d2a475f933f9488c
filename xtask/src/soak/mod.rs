//! `cargo xtask soak`: a chaos test with many clients, then a check for leaks.
//!
//! - [`client`]: one client with random tasks, whose output is verified
//! - [`faults`]: random faults of its link, and a client that sends random bytes
//! - [`connection_cuts`]: one process over a thousand connection cuts
//! - [`counters`]: work done, and resource usage

mod client;
mod connection_cuts;
mod counters;
mod faults;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use outpost_testkit::{FaultyLink, Server, ServerCommand};
use tokio::task::JoinSet;

use crate::{checkout, command};
use counters::{ResourceUsage, SharedCounters};

/// Arguments of `cargo xtask soak`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Duration in minutes
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// Number of concurrent clients
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u64,
    /// Seed of the random numbers; every run prints its own
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// First compare a gigabyte of acked output over a thousand cuts
    #[arg(long)]
    gigabyte: bool,
    /// More arguments for `outpost serve`, such as --trees subreaper
    #[arg(last = true)]
    serve: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    println!("building the release binary");
    command::run(&mut command::cargo("build --release --package outpost"))?;
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    runtime.block_on(soak(args))
}

async fn soak(args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let binary = checkout::root().join("target/release/outpost");
    let serve: Vec<&str> = "--session-ttl 5s --closed-retention 2s --log-level warn"
        .split(' ')
        .chain(args.serve.iter().map(String::as_str))
        .collect();
    let mut server = ServerCommand::new(&binary.to_string_lossy())
        .args(&serve)
        .start()
        .await;
    println!(
        "seed {seed}, {} clients, {} min",
        args.clients, args.minutes
    );

    if args.gigabyte {
        connection_cuts::run(&server, seed).await?;
    }

    // Warm up, so that one-time allocations do not look like leaks.
    let warm_up = Instant::now() + Duration::from_secs(5);
    let counters = SharedCounters::default();
    round(&server, args.clients, seed, warm_up, &counters).await?;
    let before = ResourceUsage::when_idle(&server).await;
    println!("before: {before}");

    let counters = SharedCounters::default();
    let until = Instant::now() + Duration::from_secs(60 * args.minutes);
    let started = Instant::now();
    round(&server, args.clients, seed ^ 0x5eed, until, &counters).await?;
    println!("{} in {:.0?}", counters.lock(), started.elapsed());
    let after = ResourceUsage::when_idle(&server).await;
    println!("after:  {after}");
    after.check_no_leaks(&before)?;

    let ending = Instant::now();
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait().await;
    let (code, stderr) = (ended.code, ended.stderr);
    ensure!(
        code == Some(0),
        "the server exited with {code:?}:\n{stderr}"
    );
    ensure!(
        !stderr.contains("shutdown timed out"),
        "shutdown timed out:\n{stderr}"
    );
    println!("exited with 0 after {:.0?}, nothing left", ending.elapsed());
    Ok(())
}

/// All clients and their background, until the time is over and all has been compared.
async fn round(
    server: &Server,
    clients: u64,
    seed: u64,
    until: Instant,
    counters: &SharedCounters,
) -> Result<()> {
    let mut work = JoinSet::new();
    let mut background = JoinSet::new();
    for number in 0..clients {
        let mut rng = Rng::with_seed(seed.wrapping_add(number));
        let link = Arc::new(FaultyLink::to(server.address()).await);
        let faults = faults::of_link(Arc::clone(&link), rng.fork(), Arc::clone(counters));
        background.spawn(faults);
        let (tag, counters) = (server.tag().clone(), Arc::clone(counters));
        work.spawn(client::work(link, rng, tag, until, counters));
    }
    let (address, rng) = (server.address().to_owned(), Rng::with_seed(!seed));
    background.spawn(faults::of_input(address, rng, Arc::clone(counters)));
    while let Some(done) = work.join_next().await {
        done.context("a client found an error")?;
        eprintln!("  {}", counters.lock());
    }
    Ok(())
}

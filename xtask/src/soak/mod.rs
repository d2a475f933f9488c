//! `cargo xtask soak`: a chaos test with many clients, then a check for leaks.
//!
//! - [`client`]: one client with random tasks, whose output is verified
//! - [`link_faults`]: random faults of its link
//! - [`malformed_input`]: a client that sends random bytes
//! - [`gigabyte`]: one process over a thousand connection cuts
//! - [`counters`]: work done, and resource usage

mod client;
mod counters;
mod gigabyte;
mod link_faults;
mod malformed_input;
mod rng;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use outpost_testkit::{FaultyLink, ServerCommand};
use tokio::task::JoinSet;

use crate::{checkout, command};
use counters::{Counters, ResourceUsage};
use rng::Rng;

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
    let seed = args.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    let binary = checkout::root().join("target/release/outpost");
    let serve: Vec<&str> = [
        "--session-ttl",
        "5s",
        "--closed-retention",
        "2s",
        "--log-level",
        "warn",
    ]
    .into_iter()
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
        gigabyte::run(&server, seed).await?;
    }

    // Warm up, so that one-time allocations do not look like leaks.
    let counters = Arc::new(Counters::default());
    let warm_up = Instant::now() + Duration::from_secs(5);
    round(&server, args.clients, seed, warm_up, &counters).await?;
    let before = ResourceUsage::when_idle(&server).await;
    println!("before: {before}");

    let counters = Arc::new(Counters::default());
    let until = Instant::now() + Duration::from_secs(60 * args.minutes);
    let started = Instant::now();
    round(&server, args.clients, seed ^ 0x5eed, until, &counters).await?;
    println!("{counters} in {:.0?}", started.elapsed());
    let after = ResourceUsage::when_idle(&server).await;
    println!("after:  {after}");
    after.check_no_leaks(&before)?;

    let ending = Instant::now();
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait().await;
    ensure!(
        ended.code == Some(0),
        "the server exited with {:?}:\n{}",
        ended.code,
        ended.stderr
    );
    ensure!(
        !ended.stderr.contains("shutdown timed out"),
        "shutdown timed out:\n{}",
        ended.stderr
    );
    println!("exited with 0 after {:.0?}, nothing left", ending.elapsed());
    Ok(())
}

/// All clients and their background, until the time is over and all has been compared.
async fn round(
    server: &outpost_testkit::Server,
    clients: u64,
    seed: u64,
    until: Instant,
    counters: &Arc<Counters>,
) -> Result<()> {
    let mut work = JoinSet::new();
    let mut background = JoinSet::new();
    for number in 0..clients {
        let rng = Rng::new(seed.wrapping_add(number));
        let link = Arc::new(FaultyLink::to(server.address()).await);
        background.spawn(link_faults::inject(
            Arc::clone(&link),
            rng.derive(),
            Arc::clone(counters),
        ));
        let counters = Arc::clone(counters);
        work.spawn(client::work(
            link,
            rng,
            server.tag().clone(),
            until,
            counters,
        ));
    }
    background.spawn(malformed_input::send(
        server.address().to_owned(),
        Rng::new(!seed),
        Arc::clone(counters),
    ));
    while let Some(done) = work.join_next().await {
        done.context("a client found an error")?;
        counters.print();
    }
    Ok(())
}

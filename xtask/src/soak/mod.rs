//! `cargo xtask soak`: many clients, processes, cuts, kills and floods for a while, and then a look
//! at what is left.
//!
//! - [`client`] is one client's work: what it does is drawn at random, what it gets is compared
//! - [`trouble`] is what happens to its link meanwhile
//! - [`noise`] is somebody who talks nonsense to the same server
//! - [`gigabyte`] is one process that is followed over a thousand cuts
//! - [`figures`] counts, and says whether all is back where it was

mod client;
mod dice;
mod figures;
mod gigabyte;
mod noise;
mod trouble;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use outpost_testkit::{Launch, Link};
use tokio::task::JoinSet;

use crate::{checkout, command};
use dice::Dice;
use figures::{Condition, Figures};

/// What to do for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// With how many clients at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u64,
    /// Draw the same again; printed by every run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Before that, compare a gigabyte of acknowledged output over a thousand cuts
    #[arg(long)]
    gigabyte: bool,
    /// More arguments for `outpost serve`, such as --trees keeper
    #[arg(last = true)]
    serve: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    println!("building the release binary");
    command::run(&mut command::cargo([
        "build",
        "--release",
        "--package",
        "outpost",
    ]))?;
    let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
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
    let mut server = Launch::of(&binary.to_string_lossy())
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

    // Once through everything, so that what is allocated once doesn't look like a leak.
    let figures = Arc::new(Figures::default());
    let warm_up = Instant::now() + Duration::from_secs(5);
    round(&server, args.clients, seed, warm_up, &figures).await?;
    let before = Condition::settled(&server).await;
    println!("before: {before}");

    let figures = Arc::new(Figures::default());
    let until = Instant::now() + Duration::from_secs(60 * args.minutes);
    let started = Instant::now();
    round(&server, args.clients, seed ^ 0x5eed, until, &figures).await?;
    println!("{figures} in {:.0?}", started.elapsed());
    let after = Condition::settled(&server).await;
    println!("after:  {after}");
    after.is_back_at(&before)?;

    let ending = Instant::now();
    server.signal(rustix::process::Signal::TERM);
    let ended = server.ended().await;
    ensure!(
        ended.code == Some(0),
        "the server ended with {:?}:\n{}",
        ended.code,
        ended.stderr
    );
    ensure!(
        !ended.stderr.contains("not everything ended"),
        "tasks were left:\n{}",
        ended.stderr
    );
    println!("ended with 0 after {:.0?}, nothing left", ending.elapsed());
    Ok(())
}

/// All clients and their troubles, until the time is over and all has been compared.
async fn round(
    server: &outpost_testkit::Server,
    clients: u64,
    seed: u64,
    until: Instant,
    figures: &Arc<Figures>,
) -> Result<()> {
    let mut work = JoinSet::new();
    let mut troubles = JoinSet::new();
    for number in 0..clients {
        let dice = Dice::new(seed.wrapping_add(number));
        let link = Arc::new(Link::to(server.address()).await);
        troubles.spawn(trouble::make(
            Arc::clone(&link),
            dice.other(),
            Arc::clone(figures),
        ));
        let figures = Arc::clone(figures);
        work.spawn(client::work(
            link,
            dice,
            server.mark().clone(),
            until,
            figures,
        ));
    }
    troubles.spawn(noise::make(
        server.address().to_owned(),
        Dice::new(!seed),
        Arc::clone(figures),
    ));
    while let Some(done) = work.join_next().await {
        done.context("a client found something wrong")?;
        figures.tell();
    }
    Ok(())
}

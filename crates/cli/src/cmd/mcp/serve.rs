//! `outpost mcp serve`: this program's own tools.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use outpost_client::{Error, Local, Pending, Place, Remote, RemoteOptions, Standing};
use outpost_engine::sandbox::Level;
use outpost_mcp::serve::{Confinement, Ground, Setup, Workbench};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    args::McpServe,
    cmd::sandbox,
    config::{self, Layer, Source},
    console::Signals,
    exit,
    farewell::{Remains, take_leave},
    handed_on::handed_on,
    target,
};

pub(super) async fn serve(args: &McpServe) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (confinement, level) = confinement(args)?;
    let site = Arc::new(Site::of(args, level)?);
    let setup = Setup {
        cwd: args.cwd.clone(),
        env: handed_on(&args.env, |name| std::env::var_os(name))?,
        name: args.on.on.clone().map(|on| target::described(&on)),
        confinement,
        ..Setup::default()
    };
    let ground: Arc<dyn Ground> = Arc::clone(&site) as _;
    let opening = async {
        let bench = Workbench::new(ground, setup).await;
        let bench = bench.map_err(|error| {
            let needs = match error {
                Error::NoDirectory => " needs an absolute --cwd to be confined to",
                _ => "",
            };
            let words = match &args.on.on {
                Some(on) => format!("--on {}{needs}", target::described(on)),
                None => "cannot run anything here".to_owned(),
            };
            anyhow::Error::new(error).context(words)
        })?;
        let tried = bench.try_confinement().await;
        tried.context("cannot confine what is to be confined")?;
        Ok::<_, anyhow::Error>(bench)
    };
    let opened = match signals.unless_ended(opening).await {
        Ok(opened) => opened,
        Err(signal) => {
            let _ = signals.unless_ended(site.leave()).await;
            return Ok(exit::of_signal(signal));
        }
    };
    let bench = match opened {
        Ok(bench) => Arc::new(bench),
        Err(error) => {
            let _ = signals.unless_ended(site.leave()).await;
            return Err(error);
        }
    };
    let until = CancellationToken::new();
    let speaking = bench.serve(tokio::io::stdin(), tokio::io::stdout(), until.clone());
    tokio::pin!(speaking);
    let (served, stopped) = tokio::select! {
        served = &mut speaking => (served, None),
        signal = signals.ending() => {
            until.cancel();
            (speaking.await, Some(signal))
        }
    };
    let leaving = async {
        site.leave().await;
        bench.close().await;
    };
    // Who can't wait needn't: what is here is killed when we are gone.
    tokio::select! {
        () = leaving => {}
        _ = signals.ending() => {}
    }
    served?;
    Ok(stopped.map_or(ExitCode::SUCCESS, exit::of_signal))
}

/// What everything is confined to, and how that is enforced here.
fn confinement(args: &McpServe) -> anyhow::Result<(Option<Confinement>, Level)> {
    let Some(profile) = &args.sandbox else {
        return Ok((None, Level::default()));
    };
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let in_force = layers.in_force()?;
    // Which directory it is for is known where commands start.
    let sandbox = sandbox::named(&in_force.settings.profiles, profile, Path::new("/"))
        .with_context(|| format!("--sandbox {profile}"))?;
    let confinement = sandbox.map(|sandbox| Confinement {
        profile: profile.clone(),
        sandbox,
    });
    Ok((confinement, in_force.sandbox_level))
}

/// Where the tools work: here, or on a server that is connected to again if it
/// was lost for good.
enum Site {
    Here(Local, Arc<dyn Place>),
    There {
        on: String,
        remote: Mutex<Option<Arc<Remote>>>,
    },
}

impl Site {
    fn of(args: &McpServe, level: Level) -> anyhow::Result<Self> {
        if let Some(on) = &args.on.on {
            return Ok(Site::There {
                on: on.clone(),
                remote: Mutex::new(None),
            });
        }
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        let here = target::here(cwd, level)?;
        Ok(Site::Here(here.clone(), Arc::new(here)))
    }

    /// Ends what still runs, in good order.
    async fn leave(&self) {
        match self {
            Site::Here(here, _) => {
                // What doesn't end in time is killed.
                let _ = here.close().await;
            }
            Site::There { remote, .. } => {
                if let Some(remote) = remote.lock().await.take() {
                    // What is left there goes with the session.
                    take_leave(&remote, Remains::Leftovers).await;
                }
            }
        }
    }
}

impl Ground for Site {
    fn place(&self) -> Pending<'_, Arc<dyn Place>> {
        Box::pin(async move {
            let (on, remote) = match self {
                Site::Here(_, place) => return Ok(Arc::clone(place)),
                Site::There { on, remote } => (on, remote),
            };
            let mut known = remote.lock().await;
            if let Some(remote) = &*known
                && !matches!(*remote.standing().borrow(), Standing::Failed { .. })
            {
                let place: Arc<dyn Place> = Arc::clone(remote) as _;
                return Ok(place);
            }
            let options = RemoteOptions {
                client_name: "outpost mcp serve".to_owned(),
                ..RemoteOptions::default()
            };
            let remote = Arc::new(target::reach(on, options).await?);
            *known = Some(Arc::clone(&remote));
            let place: Arc<dyn Place> = remote;
            Ok(place)
        })
    }
}

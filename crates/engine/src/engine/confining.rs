//! A confined process, from its policy to the moment its program runs.

use std::{ffi::OsString, os::fd::OwnedFd, path::Path, sync::Arc, time::Duration};

use outpost_files::Masks;
use outpost_process::{Carrier, Child, Command, Own, SpawnError, SpawnErrorKind, Stdio, Watched};
use outpost_sandbox::{
    Access, Confined, Heard, Hold, Line, Means, Plan, PrepareError, Program, Refusal, Report, Said,
    Sandbox, Step, Unenforceable, planning, policy::Policy,
};
use tokio::{sync::Semaphore, time::timeout};

use super::clerks::Purpose;
use crate::{Start, StartError};

/// How much is told of what a stage has written before it failed.
const WORDS: usize = 1024;

/// How many processes are prepared at once. Each takes a processor for as long as it takes.
pub(super) const TURNS: usize = 8;

/// How long something that was killed may take to go before it is left to others.
pub(super) const GONE_WITHIN: Duration = Duration::from_secs(2);

/// What is known of a confined process while its program doesn't run yet.
pub(super) struct Confinement {
    line: Line,
    /// What it has written for us, if that isn't where the program writes.
    said: Option<Said>,
    hold: Hold,
    /// What only a clerk has to know.
    masks: Masks,
}

/// A stage that stays, for whoever wants something of it.
pub(super) struct Hired {
    pub(super) child: Child,
    pub(super) hold: Hold,
    /// Its line.
    pub(super) socket: OwnedFd,
    pub(super) masks: Masks,
}

/// What somebody is to be confined to.
pub(super) struct Wish {
    pub(super) policy: Policy,
    /// What is granted as the temporary directory, if that is.
    pub(super) tmpdir: Option<OsString>,
    /// What is wanted of it if it is a clerk.
    pub(super) clerk: Option<Purpose>,
}

/// What this host can enforce.
pub(super) async fn means(sandbox: Option<&Sandbox>) -> Result<Means, Unenforceable> {
    let sandbox = sandbox.cloned().ok_or(Unenforceable::NoStages)?;
    let trial = tokio::task::spawn_blocking(move || sandbox.preflight());
    let failed = |error: tokio::task::JoinError| Unenforceable::Trial {
        said: error.to_string(),
    };
    trial.await.map_err(failed)?
}

/// What to start for a process, and what to see to if it is confined. Looking at the files of the
/// host may take a while, so it has a thread of its own, and takes one of these `turns`: it goes on
/// when nobody wants the process any more.
pub(super) async fn prepare(
    sandbox: Option<&Sandbox>,
    turns: &Arc<Semaphore>,
    start: &Start,
    command: Command,
    within: Duration,
) -> Result<(Command, Option<Confinement>), StartError> {
    let Some(policy) = start.sandbox.clone() else {
        return Ok((command, None));
    };
    let laid_out = command.lay_out()?;
    let program = Program {
        candidates: laid_out.candidates,
        argv: laid_out.argv,
        env: laid_out.env,
        cwd: command.cwd,
    };
    let tmpdir = start.env.iter().rev().find(|(name, _)| name == "TMPDIR");
    let tmpdir = tmpdir.map(|(_, value)| value.clone());
    let stdio = command.stdio;
    let wish = Wish {
        policy,
        tmpdir,
        clerk: None,
    };
    let (command, confinement) = confine(sandbox, turns, wish, program, stdio, within).await?;
    Ok((command, Some(confinement)))
}

/// What to start for a program that is to be confined, or for none. Nobody waits for it longer than
/// `within`: looking at a file system that hangs takes a thread and a turn with it, and not the client.
pub(super) async fn confine(
    sandbox: Option<&Sandbox>,
    turns: &Arc<Semaphore>,
    wish: Wish,
    program: Program,
    stdio: Stdio,
    within: Duration,
) -> Result<(Command, Confinement), StartError> {
    let Some(sandbox) = sandbox.cloned() else {
        let refusal = PrepareError::from(Unenforceable::NoStages);
        return Err(Refusal::from(refusal).into());
    };
    let prepared = timeout(within, in_turn(turns, sandbox, wish, program)).await;
    let (plan, masks, confined) = prepared.map_err(|_| Refusal::Slow { within })??;
    for warning in &plan.warnings {
        tracing::warn!("sandbox: {warning}");
    }
    let Confined {
        program,
        mut argv,
        env,
        passed,
        own,
        said,
        line,
        hold,
        ..
    } = confined;
    let name = std::mem::replace(&mut argv[0], program.into_os_string());
    let command = Command {
        argv,
        arg0: Some(name),
        cwd: "/".into(),
        env,
        stdio,
        carrier: Some(Carrier {
            passed: passed.into_iter().map(Arc::new).collect(),
            own: own.map(|own| Own {
                kept: own.kept.map(Arc::new),
                words: Arc::new(own.words),
            }),
        }),
    };
    let confinement = Confinement {
        line,
        said,
        hold,
        masks,
    };
    Ok((command, confinement))
}

/// Whether there is such a directory. Whether it may be entered shows inside.
fn check_entrance(directory: &Path) -> Result<(), SpawnError> {
    let errno = match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => libc::ENOTDIR,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    Err(SpawnError::not_entered(directory, errno))
}

/// What somebody who is confined to a plan finds that isn't what it looks like.
fn masks(plan: &Plan) -> Masks {
    let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
    Masks {
        denied: denied.map(|rule| rule.path.clone()).collect(),
        absent: planning::Host.placeholders(plan),
        held: Vec::new(),
    }
}

/// Why what carries a confined program was not started: that it can't be executed says nothing about
/// the program.
pub(super) fn not_carried(error: SpawnError) -> StartError {
    match (error.kind(), error.raw_os_error()) {
        (SpawnErrorKind::NotFound | SpawnErrorKind::NotExecutable, Some(errno)) => {
            let (step, said) = (Step::Bubblewrap, String::new());
            Refusal::Stage { step, errno, said }.into()
        }
        _ => error.into(),
    }
}

/// Makes the plan and prepares what it takes, as soon as there is a turn.
async fn in_turn(
    turns: &Arc<Semaphore>,
    sandbox: Sandbox,
    wish: Wish,
    program: Program,
) -> Result<(Plan, Masks, Confined), StartError> {
    // It is closed by nobody.
    let turn = Arc::clone(turns).acquire_owned().await;
    let turn = turn.map_err(|_| Refusal::Unplanned)?;
    let preparing = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        // The host first: where nothing can be enforced, that is the reason.
        let means = sandbox.preflight().map_err(PrepareError::from);
        means.map_err(Refusal::from)?;
        // Then where it starts, which would be told as something else if it is to be written too.
        check_entrance(&program.cwd)?;
        let child = planning::Child {
            cwd: &program.cwd,
            tmpdir: wish
                .tmpdir
                .as_deref()
                .filter(|dir| !dir.is_empty())
                .map(Path::new),
        };
        let bounds = planning::Bounds::default();
        let plan = planning::plan(&wish.policy, &child, &planning::Host, &bounds);
        let mut plan = plan.map_err(Refusal::from)?;
        if wish.clerk == Some(Purpose::Look) {
            plan = plan.only_looking();
        }
        let confined = sandbox.confine(&plan, program).map_err(Refusal::from)?;
        // What keeps a path absent is there by now.
        let mut masks = wish.clerk.map(|_| masks(&plan)).unwrap_or_default();
        if wish.clerk.is_some() {
            // Others' are covered as well, where they could be changed.
            masks.absent.extend(confined.absent.iter().cloned());
        }
        Ok((plan, masks, confined))
    });
    // It is not cancelled, so it ends early only by a panic, and what can't be planned can't be
    // enforced.
    preparing.await.map_err(|_| Refusal::Unplanned)?
}

impl Confinement {
    /// Waits until the program runs, but no longer than `within`. If it doesn't, the reason is found
    /// and nothing of it is left.
    pub(super) async fn see_through(
        mut self,
        child: Child,
        start: &Start,
        within: Duration,
    ) -> Result<(Child, Hold), StartError> {
        let mut guarded = Guarded(Some(child));
        let outcome = timeout(within, self.listen(&guarded, Until::End)).await;
        let (step, errno) = match outcome {
            Ok(None) => match guarded.0.take() {
                Some(child) => return Ok((child, self.hold)),
                None => return Err(Refusal::Unplanned.into()),
            },
            Ok(Some(failure)) => failure,
            Err(_) => (None, libc::ETIMEDOUT),
        };
        let said = guarded.last_words(self.said).await;
        let program = start.argv.first().map(String::as_str).unwrap_or_default();
        Err(match step {
            Some(Step::Execute) => SpawnError::not_executed(program, errno).into(),
            Some(Step::Directory) => SpawnError::not_entered(&start.cwd, errno).into(),
            Some(step) => Refusal::Stage { step, errno, said }.into(),
            None if errno == libc::ETIMEDOUT => Refusal::Slow { within }.into(),
            None => Refusal::lost(said).into(),
        })
    }

    /// Waits until a stage that is to stay has put up its walls, but no longer than `within`. Its line
    /// is for whoever wants something of it.
    pub(super) async fn see_staying(
        mut self,
        child: Child,
        within: Duration,
    ) -> Result<Hired, StartError> {
        let mut guarded = Guarded(Some(child));
        let outcome = timeout(within, self.listen(&guarded, Until::Ready)).await;
        let refusal = match outcome {
            Ok(None) => match (self.line.into_socket(), guarded.0.take()) {
                (Ok(socket), Some(child)) => {
                    let (hold, masks) = (self.hold, self.masks);
                    return Ok(Hired {
                        child,
                        hold,
                        socket,
                        masks,
                    });
                }
                (Err(error), child) => {
                    guarded.0 = child;
                    PrepareError::from(error).into()
                }
                (Ok(_), None) => Refusal::Unplanned,
            },
            Ok(Some((Some(step), errno))) => {
                let said = guarded.last_words(self.said).await;
                Refusal::Stage { step, errno, said }
            }
            Ok(Some((None, _))) => {
                let said = guarded.last_words(self.said).await;
                Refusal::lost(said)
            }
            Err(_) => Refusal::Slow { within },
        };
        Err(refusal.into())
    }

    /// Listens for as long as it takes. None if all is well; otherwise the step that failed, if it
    /// was said, and why.
    async fn listen(&mut self, guarded: &Guarded, until: Until) -> Option<(Option<Step>, i32)> {
        let lost = Some((None, libc::EIO));
        let Ok(line) = self.line.descriptor().and_then(Watched::new) else {
            return lost;
        };
        let mut ready = false;
        loop {
            match self.line.listen() {
                Ok(Heard::Nothing) => {
                    if line.readable().await.is_err() {
                        return lost;
                    }
                }
                Ok(Heard::Report {
                    report: Report::Ready,
                    sender,
                    first,
                }) => {
                    ready = true;
                    self.hold.hear_of(first);
                    if let (Some(child), Some(sender)) = (&guarded.0, sender) {
                        child.control.stands_for(sender);
                    }
                    if until == Until::Ready {
                        return None;
                    }
                }
                Ok(Heard::Report {
                    report: Report::Failed(step, errno),
                    ..
                }) => return Some((Some(step), errno)),
                Ok(Heard::End) if ready => return None,
                Ok(Heard::End) | Err(_) => return lost,
            }
        }
    }
}

/// What shows that all is well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The walls are up, and the line stays.
    Ready,
    /// The line ended, since the program runs.
    End,
}

/// A child whose program may not run yet: whoever loses interest in it kills it.
struct Guarded(Option<Child>);

impl Guarded {
    /// What it has written, when there will be nothing more, if anything.
    async fn last_words(mut self, said: Option<Said>) -> String {
        let Some(mut child) = self.0.take() else {
            return String::new();
        };
        // It may hang where it failed.
        let ended = timeout(Duration::from_millis(100), child.exit.wait()).await;
        // Nor may anybody stay whom it has started, if its program ran after all.
        let _ = child.control.kill_tree();
        if ended.is_err() {
            let _ = timeout(GONE_WITHIN, child.exit.wait()).await;
        }
        let mut said = said.map(|said| said.heard(WORDS)).unwrap_or_default();
        for output in &mut child.outputs {
            said.extend(output.drain().concat());
        }
        child.exit.reap();
        child.control.settle();
        let said = String::from_utf8_lossy(&said[..said.len().min(WORDS)]).into_owned();
        let line = said.lines().find(|line| !line.trim().is_empty());
        line.unwrap_or_default().trim().to_owned()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(child) = &self.0
            && let Err(error) = child.control.kill_tree()
        {
            tracing::warn!(%error, "killing an abandoned child failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, pin::pin};

    use outpost_process::{Spawner, SpawnerOptions};
    use outpost_sandbox::{
        Level, Network, StageCommand,
        policy::{FileSystem, Restricted},
    };

    use super::*;
    use crate::{Engine, Limits, Terminal, Terminated};

    fn sandbox() -> Sandbox {
        let stages = StageCommand {
            program: "/nowhere".into(),
            args: Vec::new(),
        };
        Sandbox::new(stages, Level::default())
    }

    fn policy() -> Policy {
        Policy {
            file_system: FileSystem::Restricted(Restricted::default()),
            network: Network::Restricted,
            cwd: "/".into(),
            workspace_roots: Vec::new(),
        }
    }

    fn confined() -> Start {
        Start {
            id: "p".to_owned(),
            argv: vec!["/bin/true".to_owned()],
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            sandbox: Some(policy()),
            terminal: Terminal::Pipes { stdin: false },
            metadata: BTreeMap::new(),
            timeout: None,
            drain: None,
            retain_bytes: None,
            kill_grace: Duration::ZERO,
        }
    }

    #[tokio::test]
    async fn who_cancels_a_start_does_not_wait_for_what_is_prepared() {
        let spawner = Spawner::new(SpawnerOptions::default()).expect("threads can be started");
        let engine = Engine::with_sandbox(spawner, Some(sandbox()), Limits::default());
        let (session, _) = engine.open_private_session().expect("a session");
        let turns = Arc::clone(&engine.shared.preparing);
        let all_turns = turns
            .acquire_many(TURNS as u32)
            .await
            .expect("they are free");

        let start = confined();
        let reservation = session.reserve(&start).expect("the name is free");
        let mut started = pin!(engine.start(&session, reservation, start));
        tokio::select! {
            biased;
            _ = &mut started => panic!("it had no turn"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(session.terminate("p", None, false), Terminated::Running);
        let patience = Duration::from_secs(30);
        let answered = timeout(patience, started).await.expect("an answer at once");
        assert!(matches!(answered, Err(StartError::Cancelled(id)) if id == "p"));
        assert!(
            session.reserve(&confined()).is_ok(),
            "the name is free again"
        );

        drop(all_turns);
        assert!(engine.shutdown(patience).await);
    }

    /// As if all turns were taken by plans for a file system that hangs.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_plan_without_end() {
        let sandbox = sandbox();
        let wish = Wish {
            policy: policy(),
            tmpdir: None,
            clerk: None,
        };
        let none = Arc::new(Semaphore::new(0));
        let within = Duration::from_secs(20);
        let refused = confine(
            Some(&sandbox),
            &none,
            wish,
            Program::none(),
            Stdio::Pipes { stdin: false },
            within,
        );
        let started = tokio::time::Instant::now();
        let words = refused.await.map(|_| ()).unwrap_err().to_string();
        assert!(started.elapsed() < within * 2);
        assert_eq!(
            words,
            "failed to prepare process sandbox: it took longer than 20s"
        );
    }
}

//! The remote place.

use std::{collections::BTreeMap, sync::Arc};

use outpost_journal::Seq;
use outpost_protocol::{
    Empty, ListResult, Method, PathUri, ProcessEntry, RpcError, ServerCapabilities, ServerInfo,
    SessionCloseParams, SessionEntry, SessionListResult, StartParams, Surroundings, code,
};
use tokio::{
    runtime::Handle as Runtime,
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    Dialer, Distant, RemoteOptions,
    cabinet::RemoteCabinet,
    core::Core,
    dial::UrlDialer,
    handshake::Session,
    hearing::now,
    http,
    launch::LaunchDialer,
    line::CallError,
    listen::attend,
    reins::{RemoteReins, announced},
    tracked::Tracked,
    undo::Undo,
};
use crate::{
    Error, Files, HttpRequest, HttpResponse, Pending, Place, Process, Start,
    process::{Handle, Reins},
};

/// How long to wait before a session that is still attached is asked for again.
const ATTACHED_PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// How the connection of a remote place stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All is well.
    Connected,
    /// The connection is lost, and is being brought back. Calls wait.
    Recovering,
    /// It can't be brought back. Every call fails.
    Failed {
        /// What became of it.
        reason: Arc<str>,
        /// The same, for programs.
        cause: Cause,
    },
}

/// Why a connection can't be brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It is lost, or was refused.
    Lost,
    /// Another connection has taken the session over.
    TakenOver,
}

/// Processes behind a server. Clones name the same place; when the last of them
/// is gone, with all its processes, the connection is closed.
///
/// What was not terminated goes on as long as the session lasts without a
/// connection, and can be taken up again by its [`session_id`](Self::session_id).
#[derive(Clone)]
pub struct Remote {
    guard: Arc<Guard>,
}

/// Ends the tasks of a place with its last user.
pub(super) struct Guard {
    pub(super) core: Arc<Core>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.core.ending.cancel();
        self.core.tasks.close();
    }
}

impl Remote {
    /// Connects to `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`.
    pub async fn connect(url: &str, options: RemoteOptions) -> Result<Self, Error> {
        let dialer = UrlDialer {
            url: url.to_owned(),
            tls: options.tls.clone(),
        };
        Self::over(Arc::new(dialer), options).await
    }

    /// Launches a server and speaks to it through its standard input and output.
    /// It ends with the place, and so does everything it runs; a connection to
    /// it can't be brought back. It is in our process group, and so what is typed
    /// at a terminal to end us reaches it too, unless the command sees to that.
    pub async fn launch(
        command: std::process::Command,
        options: RemoteOptions,
    ) -> Result<Self, Error> {
        Self::over(Arc::new(LaunchDialer::new(command)), options).await
    }

    /// Connects in a way of the caller's own.
    pub async fn over(dialer: Arc<dyn Dialer>, options: RemoteOptions) -> Result<Self, Error> {
        let within = options.limits.connect_within;
        let core = Arc::new(Core::new(dialer, options));
        // From here on, whoever stops waiting ends it all.
        let guard = Arc::new(Guard { core });
        let connected = timeout(within, guard.core.connect()).await;
        connected.map_err(|_| Error::TimedOut {
            attempt: "connecting",
            within,
        })??;
        Ok(Remote { guard })
    }

    /// The key of the session, with which it can be taken up again. Whoever has
    /// it can do that. A server without sessions has none.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.core().session_id()
    }

    /// What the server says it can do beyond the released ones.
    #[must_use]
    pub fn capabilities(&self) -> ServerCapabilities {
        self.core().capabilities()
    }

    /// Who answers, if the server says so.
    #[must_use]
    pub fn server_info(&self) -> Option<&ServerInfo> {
        self.core().welcome.get()?.server_info.as_ref()
    }

    /// How the connection stands, now and from now on.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.core().standing.subscribe()
    }

    /// Waits until there is a connection, if it was lost: by then the server was
    /// told to end whatever may have come of starts whose answer was lost. Fails
    /// once it can't be brought back.
    pub async fn reached(&self) -> Result<(), Error> {
        self.core().line().await.map(drop)
    }

    /// All sessions of the server, for its owner. Beyond the released servers:
    /// `sessionList`.
    pub async fn sessions(&self) -> Result<Vec<SessionEntry>, Error> {
        announced(self.capabilities().session_list, "sessionList")?;
        let list: SessionListResult = self.core().again(Method::SessionList, &Empty {}).await?;
        Ok(list.sessions)
    }

    /// Ends the session and everything that runs in it, and waits for that.
    /// Beyond the released servers: `session/close` comes with `processList`.
    pub async fn close_session(&self) -> Result<(), Error> {
        announced(self.capabilities().process_list, "processList")?;
        let Empty {} = self.core().once(Method::SessionClose, &Empty {}).await?;
        self.core().session_ended();
        Ok(())
    }

    /// Ends another session and everything that runs in it, and waits for that;
    /// for the owner of the server. Beyond the released servers: `sessionList`.
    pub async fn end_session(&self, session_id: &str) -> Result<(), Error> {
        announced(self.capabilities().session_list, "sessionList")?;
        let params = SessionCloseParams {
            session_id: Some(session_id.to_owned()),
        };
        let Empty {} = self.core().once(Method::SessionClose, &params).await?;
        Ok(())
    }

    /// A process to look at from a distance, in a way that nobody else notices:
    /// of this session or, for the owner of the server, of the given one.
    #[must_use]
    pub fn distant(&self, session_id: Option<&str>, process_id: &str) -> Distant {
        let session = session_id.map(str::to_owned);
        Distant::new(Arc::clone(&self.guard), session, process_id.to_owned())
    }

    fn core(&self) -> &Arc<Core> {
        &self.guard.core
    }

    async fn start_process(&self, mut start: Start) -> Result<Process, Error> {
        let core = self.core();
        check(&start, core.capabilities())?;
        let cwd = match start.cwd.take() {
            Some(cwd) if cwd.is_absolute() => PathUri::from_path(&cwd),
            // Relative to where the place is.
            relative => {
                let base = core.base().await?;
                PathUri::from_path(&base.join(relative.unwrap_or_default()))
            }
        };
        let made_up = start.id.is_none();
        let id = start.id.take().unwrap_or_else(|| core.next_name());
        let params = start.into_params(id, cwd);
        let tracked = core.expect(&params)?;
        let mut undo = Undo {
            core,
            tracked: &tracked,
            made_up,
            asked: None,
            done: false,
        };
        let line = core.line().await?;
        line.outbox.listening().await;
        let outcome = undo.start(&line, &params).await;
        // Whether a start whose answer is lost took place is settled when the
        // connection is back.
        outcome.map_err(|error| Error::from(error).of_start())?;
        Ok(self.handle(&tracked, false))
    }

    /// Whoever else asks for the same process waits for the same answer, and
    /// whoever stops waiting leaves it to the others.
    async fn attach_to(&self, id: String, after: Seq) -> Result<Process, Error> {
        let core = self.core();
        let (tracked, new) = core.meet(&id, after);
        // What is being started is its starter's to hold first.
        let held = (!tracked.is_started_here()).then(|| self.handle(&tracked, true));
        if new {
            core.read_what_is_missing(&tracked);
        }
        tracked.arrival().await?;
        Ok(held.unwrap_or_else(|| self.handle(&tracked, true)))
    }

    fn handle(&self, tracked: &Arc<Tracked>, detached: bool) -> Process {
        Process::new(tracked.handle_or(|| {
            let reins: Arc<dyn Reins> = Arc::new(RemoteReins {
                guard: Arc::clone(&self.guard),
                tracked: Arc::clone(tracked),
            });
            let record = Arc::clone(&tracked.record);
            Handle::new(record, reins, detached, Runtime::current())
        }))
    }
}

impl Place for Remote {
    fn start(&self, start: Start) -> Pending<'_, Process> {
        Box::pin(self.start_process(start))
    }

    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process> {
        Box::pin(self.attach_to(id.to_owned(), Seq(after_seq)))
    }

    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>> {
        Box::pin(async {
            announced(self.capabilities().process_list, "processList")?;
            let list: ListResult = self.core().again(Method::ProcessList, &Empty {}).await?;
            Ok(list.processes)
        })
    }

    fn environment(&self) -> Pending<'_, Surroundings> {
        Box::pin(self.core().environment())
    }

    fn files(&self) -> Files {
        Files::new(Arc::new(RemoteCabinet::new(Arc::clone(&self.guard))))
    }

    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse> {
        Box::pin(http::request(&self.guard, request))
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let core = self.core();
            core.ending.cancel();
            core.tasks.close();
            core.tasks.wait().await;
            Ok(())
        })
    }
}

/// What a server has to announce before it is asked for such a start.
fn check(start: &Start, can: ServerCapabilities) -> Result<(), Error> {
    if start.size.is_some() {
        announced(can.resize, "resize")?;
    }
    if start.timeout.is_some() {
        announced(can.timeouts, "timeouts")?;
    }
    if start.kill_grace.is_some() {
        announced(can.terminate_tree, "terminateTree")?;
    }
    Ok(())
}

impl Core {
    /// Makes the first connection, and has it looked after.
    async fn connect(self: &Arc<Self>) -> Result<(), Error> {
        let deadline = now() + self.options.limits.connect_within;
        let transport = self.dialer.dial().await;
        let transport = transport.map_err(|source| Error::Unreachable {
            address: self.dialer.name(),
            source: Arc::new(source),
        })?;
        let line = self.next_line();
        attend(self, &line, transport);
        let welcome = loop {
            let session = match &self.options.resume {
                None => Session::New,
                Some(id) => Session::Resume {
                    id,
                    takeover: self.options.takeover,
                    from: BTreeMap::new(),
                },
            };
            match self.shake_hands(&line, session).await {
                // The server may not have noticed that its last owner is gone.
                Err(CallError::Refused(refusal))
                    if refusal.code == code::SESSION_ATTACHED
                        && now() + ATTACHED_PAUSE < deadline =>
                {
                    sleep(ATTACHED_PAUSE).await;
                }
                answer => break answer?,
            }
        };
        self.opened(welcome);
        self.tasks.spawn(Arc::clone(self).supervise(line));
        self.tasks.spawn(Arc::clone(self).acknowledge_later());
        Ok(())
    }

    /// Makes room for what will be heard of a process that is about to start;
    /// its events may come before the answer.
    fn expect(self: &Arc<Self>, params: &StartParams) -> Result<Arc<Tracked>, Error> {
        let id = &params.process_id;
        if self.find(id).is_some_and(|known| !known.record.is_over()) {
            let words = format!("process {id} already exists");
            return Err(Error::from(RpcError::invalid_request(words)).of_start());
        }
        let tracked = Tracked::new(self, id);
        self.follow(&tracked);
        Ok(tracked)
    }
}

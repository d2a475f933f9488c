//! Client library of Outpost: run processes in your own program or on a server, through one API.
//!
//! An [`Executor`] starts processes, accesses files and makes HTTP requests. There are two:
//! [`LocalExecutor`] works in this program, [`RemoteExecutor`] on a server. Both behave alike.
//!
//! ```
//! use outpost_client::{Event, Executor, LocalExecutor, LocalOptions, Start};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), outpost_client::Error> {
//! let executor = LocalExecutor::new(LocalOptions::default())?;
//! let process = executor.start(Start::shell("echo hello; exit 3")).await?;
//! let mut events = process.events();
//! while let Some(event) = events.next().await {
//!     match event {
//!         Event::Output { bytes, .. } => assert_eq!(bytes, "hello\n"),
//!         Event::Exited { code, .. } => assert_eq!(code, 3),
//!         Event::Closed { .. } => println!("all output was read"),
//!         Event::Failed { error } => eprintln!("cannot observe the process: {error}"),
//!     }
//! }
//! executor.close().await
//! # }
//! ```
//!
//! With a server, only the first line differs:
//!
//! ```no_run
//! use std::sync::Arc;
//! use outpost_client::{Executor, RemoteExecutor, RemoteOptions};
//!
//! # async fn connect() -> Result<(), outpost_client::Error> {
//! let executor: Arc<dyn Executor> =
//!     Arc::new(RemoteExecutor::connect("ws://127.0.0.1:40123", RemoteOptions::default()).await?);
//! # Ok(())
//! # }
//! ```
//!
//! Standard input and output are also available as [`AsyncWrite`](tokio::io::AsyncWrite) and
//! [`AsyncRead`](tokio::io::AsyncRead):
//!
//! ```
//! use outpost_client::{Executor, LocalExecutor, LocalOptions, Start};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let executor = LocalExecutor::new(LocalOptions::default())?;
//! let sort = executor.start(Start::new(["sort"]).stdin()).await?;
//! let (mut stdin, mut stdout) = (sort.stdin(), sort.stdout());
//! stdin.write_all(b"pear\napple\n").await?;
//! stdin.shutdown().await?;
//! let mut sorted = String::new();
//! stdout.read_to_string(&mut sorted).await?;
//! assert_eq!(sorted, "apple\npear\n");
//! assert_eq!(sort.wait().await?.code, 0);
//! # executor.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An executor also makes HTTP requests from its host:
//!
//! ```no_run
//! use outpost_client::{Executor, HttpRequest, LocalExecutor, LocalOptions};
//!
//! # async fn fetch() -> Result<(), outpost_client::Error> {
//! # let executor = LocalExecutor::new(LocalOptions::default())?;
//! let mut response = executor.http(HttpRequest::get("http://127.0.0.1:8080/")).await?;
//! assert_eq!(response.status, 200);
//! while let Some(chunk) = response.body.next().await {
//!     println!("{} bytes", chunk?.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! It watches files and directories of its host:
//!
//! ```
//! use std::path::Path;
//! use outpost_client::{Executor, LocalExecutor, LocalOptions, WatchOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("outpost-doc-watch-{}", std::process::id()));
//! # std::fs::create_dir(&folder)?;
//! let executor = LocalExecutor::new(LocalOptions::default())?;
//! let mut watch = executor.watch(&folder, WatchOptions { recursive: true }).await?;
//! std::fs::write(folder.join("new"), "text")?;
//! let changes = watch.next().await?;
//! assert_eq!(changes.paths, [folder.join("new")]);
//! # std::fs::remove_dir_all(&folder)?;
//! # executor.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The `examples` directory has complete programs: `run_command`, `follow_and_reconnect` and
//! `files`.
//!
//! # Features
//!
//! - `local` (default): [`LocalExecutor`], with the process spawner and the sandbox
//! - `remote` (default): [`RemoteExecutor`]
//!
//! # How it works
//!
//! Each process has an event log in this program: contiguously numbered events and the cursors of
//! its readers. Streams, polls and waits only use that log, so they behave the same with every
//! executor. A local executor has one task per process that copies events from the engine to the
//! log. A remote executor has a connection whose receiver does so, after it has put events in
//! order.
//!
//! If the connection of a remote executor is lost, handles and streams stay valid, and new calls
//! wait. A task reconnects, resumes the session, reads missed events and lets the calls continue.
//! If it gives up, everything fails with the same error. The deciding parts are pure state
//! machines with time passed in: `recovery`, `assembler`, `entries` and `acks`.

mod error;
mod executor;
mod files;
mod http;
#[cfg(feature = "local")]
mod local;
mod process;
#[cfg(feature = "remote")]
mod remote;
mod sandbox;
mod start;

pub use error::Error;
pub use executor::{Executor, Pending};
pub use files::{
    FileChanges, FileError, FileErrorKind, FileReader, FileWatch, FileWriter, Files, Remove,
    WatchOptions,
};
pub use http::{HttpBody, HttpRequest, HttpResponse};
#[cfg(feature = "local")]
pub use local::{LocalExecutor, LocalOptions};
#[cfg(feature = "local")]
pub use outpost_engine::{
    Limits, ReaperCommand, TreeChoice,
    sandbox::{HelperCommand, Level},
};
pub use outpost_journal::Exit;
pub use outpost_protocol::{
    DirectoryEntry, EndedBy, EndedProcess, EntryKind, EnvPolicy, ErrorKind,
    FileMetadata as Metadata, HostInfo, Inherit, LimitSupport, NetworkDecision,
    NetworkPolicyParams, NetworkRecord, NetworkResult as NetworkActivity, NetworkVerdict, PathUri,
    ProcessEntry, ProcessState, ResourceLimits, ResourceUsage, SandboxParams, ServerCapabilities,
    ServerInfo, SessionEntry, Shell, Signal, Stream, TerminalSize, WalkEntry, WalkError,
    WalkOptions, WalkResult as Walk,
};
pub use process::{Chunk, Event, Events, OutputReader, Page, Process, Stdin, Terminate};
#[cfg(feature = "remote")]
pub use remote::{
    BearerToken, ConnectionState, DeliveryMode, DialError, Dialer, Fingerprint, InvalidFingerprint,
    Lease, ProcessPeek, ReconnectFailure, RemoteExecutor, RemoteLimits, RemoteOptions, SecretError,
    TlsConfig, TlsError, TlsOptions, Transport, check_url, public_address,
};
pub use sandbox::Sandbox;
pub use start::Start;

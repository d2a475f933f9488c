//! A place where processes run, in this program or behind a server, and no way
//! to tell which from the outside.
//!
//! ```
//! use outpost_client::{Event, Local, LocalOptions, Place, Start};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), outpost_client::Error> {
//! let place = Local::new(LocalOptions::default())?;
//! let process = place.start(Start::shell("echo hello; exit 3")).await?;
//! let mut events = process.events();
//! while let Some(event) = events.next().await {
//!     match event {
//!         Event::Output { bytes, .. } => assert_eq!(bytes, "hello\n"),
//!         Event::Exited { code, .. } => assert_eq!(code, 3),
//!         Event::Closed { .. } => println!("all of it was read"),
//!         Event::Failed { message } => eprintln!("it is out of sight: {message}"),
//!     }
//! }
//! place.close().await
//! # }
//! ```
//!
//! With a [`Remote`] the rest is the same:
//!
//! ```no_run
//! use std::sync::Arc;
//! use outpost_client::{Place, Remote, RemoteOptions};
//!
//! # async fn connect() -> Result<(), outpost_client::Error> {
//! let place: Arc<dyn Place> =
//!     Arc::new(Remote::connect("ws://127.0.0.1:40123", RemoteOptions::default()).await?);
//! # Ok(())
//! # }
//! ```
//!
//! Input and output can also be had as [`AsyncWrite`](tokio::io::AsyncWrite) and
//! [`AsyncRead`](tokio::io::AsyncRead):
//!
//! ```
//! use outpost_client::{Local, LocalOptions, Place, Start};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let place = Local::new(LocalOptions::default())?;
//! let sort = place.start(Start::new(["sort"]).stdin()).await?;
//! let (mut stdin, mut stdout) = (sort.stdin(), sort.stdout());
//! stdin.write_all(b"pear\napple\n").await?;
//! stdin.shutdown().await?;
//! let mut sorted = String::new();
//! stdout.read_to_string(&mut sorted).await?;
//! assert_eq!(sorted, "apple\npear\n");
//! assert_eq!(sort.wait().await?.code, 0);
//! # place.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A place also makes HTTP requests, from where it stands:
//!
//! ```no_run
//! use outpost_client::{HttpRequest, Local, LocalOptions, Place};
//!
//! # async fn fetch() -> Result<(), outpost_client::Error> {
//! # let place = Local::new(LocalOptions::default())?;
//! let mut response = place.http(HttpRequest::get("http://127.0.0.1:8080/")).await?;
//! assert_eq!(response.status, 200);
//! while let Some(piece) = response.body.next().await {
//!     println!("{} bytes", piece?.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Theory of operation
//!
//! Whatever the place, each process has a *record* here: a log of what was heard
//! of it, numbered from 1 without holes, and the cursors of those who read it.
//! Streams, polls and waits know nothing else, so they are the same everywhere.
//! A local place has one task per process that moves events from the engine into
//! the record. A remote one has a connection whose reader does so, and puts what
//! comes out of order into its place first.
//!
//! When the connection of a remote place is lost, handles and streams stay as
//! they are and new calls wait. One task dials again, resumes the session,
//! catches up with every process and lets the calls go on; or it gives up, and
//! everything fails with the same words. What decides in this is plain data with
//! the time passed in: `recovery`, `puzzle` and `acks`.

mod error;
mod event;
mod files;
mod http;
mod local;
mod place;
mod process;
mod record;
mod remote;
mod sandbox;
mod start;

pub use error::Error;
pub use event::{Chunk, Event, Page};
pub use files::{FileError, FileErrorKind, FileReader, FileWriter, Files, Remove};
pub use http::{HttpBody, HttpRequest, HttpResponse};
pub use local::{Local, LocalOptions};
pub use outpost_engine::{
    KeeperCommand, Limits, TreeChoice,
    sandbox::{Level, StageCommand},
};
pub use outpost_journal::Exit;
pub use outpost_protocol::{
    EnvPolicy, FsDirectoryEntry as DirectoryEntry, FsEntryKind as EntryKind,
    FsGetMetadataResult as Metadata, FsWalkEntry as WalkEntry, FsWalkError as WalkError,
    FsWalkOptions as WalkOptions, FsWalkResult as Walk, Inherit, PathUri, ProcessEntry,
    ProcessState, SandboxParams, ServerCapabilities, ServerInfo, SessionEntry, SignalName, Size,
    StreamName, Surroundings,
};
pub use place::{Pending, Place};
pub use process::{Events, OutputReader, Process, Stdin, Terminate};
pub use remote::{
    Cause, DeliveryChoice, DialError, Dialer, Distant, Lease, Remote, RemoteLimits, RemoteOptions,
    Standing, Transport, public_address,
};
pub use sandbox::Sandbox;
pub use start::Start;

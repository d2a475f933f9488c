//! `--on`.

/// Which server is meant.
#[derive(clap::Args, Debug)]
pub(crate) struct On {
    /// The server to use: ws://HOST:PORT, wss://HOST:PORT or unix:///PATH; for
    /// `run` also stdio:COMMAND, to launch one and speak to it through its input
    /// and output
    #[arg(long, value_name = "URL")]
    pub(crate) on: Option<String>,
}

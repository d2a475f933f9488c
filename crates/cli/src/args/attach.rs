//! `outpost attach`.

use super::On;
use crate::console::Key;

/// Arguments of `outpost attach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost attach k3                       a unique prefix of the id
  outpost attach --detach-key ^q k3xabcde")]
pub(crate) struct Attach {
    /// The key that detaches: a letter or sign with Ctrl
    #[arg(long, value_name = "KEY", default_value_t = Key::DETACH)]
    pub(crate) detach_key: Key,

    #[command(flatten)]
    pub(crate) on: On,

    /// The process id, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

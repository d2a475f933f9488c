//! `outpost attach`.

use super::On;
use crate::console::Key;

/// What to attach to.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost attach k3                       the only id that begins with k3
  outpost attach --detach-key ^q k3xabcde")]
pub(crate) struct Attach {
    /// The key that leaves it running: a letter or sign with Ctrl
    #[arg(long, value_name = "KEY", default_value_t = Key::DETACH)]
    pub(crate) detach_key: Key,

    #[command(flatten)]
    pub(crate) on: On,

    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

//! The unsafe system interfaces, one per file.

pub(crate) mod child_setup;
pub(crate) mod child_slot;
pub(crate) mod clone;
pub(crate) mod clone_mode;
pub(crate) mod fork;
pub(crate) mod mask;
pub(crate) mod memory;
pub(crate) mod register;
pub(crate) mod signal_reset;
pub(crate) mod stack;
pub(crate) mod wait_children;
pub(crate) mod waitid;
mod write_oom_score;

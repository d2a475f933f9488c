//! Mounts of a sandbox: derived from a plan, and verified inside.
//!
//! - [`layout`]: derives the mounts from a plan; pure
//! - [`host_view`]: the facts about the host's paths that the layout needs
//! - [`mount_check`]: verifies the mounts inside the sandbox

mod host_view;
mod layout;
mod mount_check;

pub(super) use host_view::LocalHostPaths;
pub(super) use layout::{
    DEVICES, Layout, Mount, Mounts, PlannedMount, is_read_only_device, lay_out,
};

//! Host features that subreapers depend on, detected once by the factory.

use std::io;

use super::descendants::ChildLookup;
use crate::spawn_context;
use crate::sys::child_setup::{self, CloseMode};
use crate::sys::clone;

/// Features that differ between hosts.
#[derive(Copy, Clone, Debug)]
pub(super) struct HostFeatures {
    pub(super) lookup: ChildLookup,
    /// `clone3` is unavailable, as in old containers.
    pub(super) legacy_clone: bool,
    /// A subreaper has few descriptors, so its children copy the whole table.
    pub(super) close_mode: CloseMode,
}

impl HostFeatures {
    pub(super) fn detect() -> io::Result<Self> {
        let close_mode = if child_setup::has_close_range() {
            CloseMode::Range
        } else {
            // A margin for descriptors that a subreaper opens after the fork.
            CloseMode::Each {
                highest: spawn_context::highest_descriptor() + 16,
            }
        };
        Ok(Self {
            lookup: ChildLookup::detect()?,
            legacy_clone: !clone::has_clone3(),
            close_mode,
        })
    }
}

//! What a host lets a keeper do, found out once by the mother of them all.

use std::io;

use super::family::Family;
use crate::means;
use crate::sys::birth::{self, Closing};
use crate::sys::clone;

/// How keepers do what differs between hosts.
#[derive(Copy, Clone, Debug)]
pub(super) struct Ways {
    pub(super) family: Family,
    /// `clone3` is refused, as in old containers.
    pub(super) old_call: bool,
    /// A keeper has few descriptors, so its children copy the whole table.
    pub(super) closing: Closing,
}

impl Ways {
    pub(super) fn find() -> io::Result<Self> {
        Ok(Self {
            family: Family::find()?,
            old_call: !clone::has_clone3(),
            closing: match birth::has_close_range() {
                true => Closing::Range,
                // With some room for what a keeper opens and its mother hasn't.
                false => Closing::Each {
                    highest: means::highest_descriptor() + 16,
                },
            },
        })
    }
}

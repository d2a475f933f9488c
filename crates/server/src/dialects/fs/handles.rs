//! The table of open handles of a connection, by the client's ids.

use std::{collections::HashMap, sync::Arc};

use outpost_engine::WorkerExit;
use outpost_files::{OpenFile, Writer};
use outpost_protocol::{ErrorKind, RpcError, code};

/// The longest id of a handle, in bytes.
const MAX_HANDLE_BYTES: usize = 32;

/// An open handle. Clones share the file.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    /// A file that is read, or replaced in place, in blocks. The kernel rejects the other use.
    File(Arc<OpenFile>),
    /// A stream of the new content of a file, which replaces the old one when it is committed.
    Stream(Arc<OpenWriter>),
}

/// A file that is being replaced, and the exit of its worker.
#[derive(Debug)]
pub(crate) struct OpenWriter {
    pub(super) writer: Writer,
    pub(super) exit: WorkerExit,
}

/// A reserved entry of the table. Tells it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReservationId(u64);

/// The table of handles. An id is reserved in the order of the requests, before the file is opened,
/// so that a following close applies to the file that is being opened.
#[derive(Debug)]
pub(crate) struct Handles {
    limit: usize,
    next: u64,
    closed: bool,
    open: HashMap<String, (ReservationId, Option<Handle>)>,
}

impl Handles {
    pub(crate) fn new(limit: usize) -> Self {
        Handles {
            limit,
            next: 0,
            closed: false,
            open: HashMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Reserves the id of a handle that is about to be opened.
    pub(crate) fn reserve(&mut self, id: &str) -> Result<ReservationId, RpcError> {
        let rejected = |message: String| Err(RpcError::invalid_request(message));
        if id.len() > MAX_HANDLE_BYTES {
            return rejected(format!(
                "file handle ID must not exceed {MAX_HANDLE_BYTES} bytes"
            ));
        }
        if self.closed {
            return rejected("the connection has ended".to_owned());
        }
        if self.open.contains_key(id) {
            return rejected(format!("file handle `{id}` already exists"));
        }
        if self.open.len() >= self.limit {
            let limit = self.limit;
            return rejected(format!(
                "at most {limit} file handles may be open per connection"
            ));
        }
        let slot = ReservationId(self.next);
        self.next += 1;
        self.open.insert(id.to_owned(), (slot, None));
        Ok(slot)
    }

    /// Puts a handle into its slot. Returns it if the slot was closed meanwhile.
    pub(crate) fn fill(&mut self, id: &str, slot: ReservationId, handle: Handle) -> Option<Handle> {
        match self.open.get_mut(id) {
            Some((reserved, entry)) if *reserved == slot => {
                *entry = Some(handle);
                None
            }
            _ => Some(handle),
        }
    }

    /// Frees a slot that will not be filled.
    pub(crate) fn free(&mut self, id: &str, slot: ReservationId) {
        if self
            .open
            .get(id)
            .is_some_and(|(reserved, _)| *reserved == slot)
        {
            self.open.remove(id);
        }
    }

    /// The handle with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Handle> {
        self.open.get(id).and_then(|(_, handle)| handle.clone())
    }

    /// Removes the writer with this id.
    pub(crate) fn take_writer(&mut self, id: &str) -> Option<Arc<OpenWriter>> {
        match self.open.get(id) {
            Some((_, Some(Handle::Stream(writer)))) => {
                let writer = Arc::clone(writer);
                self.open.remove(id);
                Some(writer)
            }
            _ => None,
        }
    }

    /// Removes a handle or a reservation.
    pub(crate) fn close(&mut self, id: &str) -> Option<Handle> {
        self.open.remove(id).and_then(|(_, handle)| handle)
    }

    /// Removes everything and rejects further reservations.
    pub(crate) fn close_all(&mut self) -> Vec<Handle> {
        self.closed = true;
        let open = std::mem::take(&mut self.open);
        open.into_values()
            .filter_map(|(_, handle)| handle)
            .collect()
    }
}

/// Returns the error for an id that has no handle.
pub(super) fn unknown_handle(id: &str) -> RpcError {
    let id: String = id.chars().take(MAX_HANDLE_BYTES).collect();
    let message = format!("unknown file handle `{id}`");
    RpcError::new(code::NOT_FOUND, ErrorKind::UnknownHandle, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outpost_files::{FileExecutor, Files};
    use outpost_protocol::{PathUri, Symlinks};

    fn handle() -> Handle {
        let executor = FileExecutor::in_process(Files::default());
        let path = PathUri::from_path("/proc/meminfo".as_ref());
        let file = executor.open(&path, Symlinks::Follow);
        Handle::File(Arc::new(file.unwrap()))
    }

    fn rejection(handles: &mut Handles, id: &str) -> String {
        handles.reserve(id).unwrap_err().message
    }

    #[test]
    fn id_is_in_use_until_closed() {
        let mut handles = Handles::new(2);
        let slot = handles.reserve("a").unwrap();
        assert_eq!(
            rejection(&mut handles, "a"),
            "file handle `a` already exists"
        );
        assert!(handles.get("a").is_none(), "it is only reserved");
        assert!(handles.fill("a", slot, handle()).is_none());
        assert!(handles.get("a").is_some());
        handles.reserve("b").unwrap();
        assert_eq!(
            rejection(&mut handles, "c"),
            "at most 2 file handles may be open per connection"
        );
        assert!(handles.close("a").is_some());
        assert!(handles.close("a").is_none());
        handles.reserve("c").unwrap();
    }

    #[test]
    fn handle_closed_while_opening_is_discarded() {
        let mut handles = Handles::new(2);
        let early = handles.reserve("a").unwrap();
        handles.close("a");
        let late = handles.reserve("a").unwrap();
        assert!(handles.fill("a", early, handle()).is_some());
        handles.free("a", early);
        assert_eq!(
            rejection(&mut handles, "a"),
            "file handle `a` already exists",
            "the id belongs to the later reservation"
        );
        assert!(handles.fill("a", late, handle()).is_none());
    }

    #[test]
    fn closed_table_rejects_everything() {
        let mut handles = Handles::new(2);
        let slot = handles.reserve("a").unwrap();
        let other = handles.reserve("b").unwrap();
        handles.fill("a", slot, handle());
        assert_eq!(handles.close_all().len(), 1);
        assert!(handles.fill("b", other, handle()).is_some());
        assert_eq!(rejection(&mut handles, "c"), "the connection has ended");
    }
}

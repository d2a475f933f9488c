//! What a connection has open, by the client's own names. Pure.

use std::{collections::HashMap, sync::Arc};

use outpost_engine::Departure;
use outpost_files::{OpenFile, Writer};

/// Something open. Clones name the same.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    /// A file that is read in blocks.
    Read(Arc<OpenFile>),
    /// A file that is being replaced in blocks.
    Write(Arc<Draft>),
}

/// A file that is being replaced, and how whoever does that leaves.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(super) writer: Writer,
    pub(super) departure: Departure,
}

/// Why nothing more can be opened under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupied {
    /// The name is taken.
    Exists,
    /// So many are open already.
    TooMany(usize),
    /// The connection is gone.
    Closed,
}

/// A place in the table that was taken before there is anything to put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

/// The table. A name is reserved in the order of the wire, before anything is
/// opened, so that a close that comes next closes what that request opens.
#[derive(Debug)]
pub(crate) struct Handles {
    limit: usize,
    next: u64,
    closed: bool,
    open: HashMap<String, (Place, Option<Handle>)>,
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

    /// Takes a name.
    pub(crate) fn reserve(&mut self, id: &str) -> Result<Place, Occupied> {
        if self.closed {
            return Err(Occupied::Closed);
        }
        if self.open.contains_key(id) {
            return Err(Occupied::Exists);
        }
        if self.open.len() >= self.limit {
            return Err(Occupied::TooMany(self.limit));
        }
        let place = Place(self.next);
        self.next += 1;
        self.open.insert(id.to_owned(), (place, None));
        Ok(place)
    }

    /// Fills a place. If it was closed meanwhile, the handle comes back.
    pub(crate) fn fill(&mut self, id: &str, place: Place, handle: Handle) -> Option<Handle> {
        match self.open.get_mut(id) {
            Some((there, slot)) if *there == place => {
                *slot = Some(handle);
                None
            }
            _ => Some(handle),
        }
    }

    /// Frees a place that won't be filled.
    pub(crate) fn free(&mut self, id: &str, place: Place) {
        if self.open.get(id).is_some_and(|(there, _)| *there == place) {
            self.open.remove(id);
        }
    }

    /// What is open under a name.
    pub(crate) fn find(&self, id: &str) -> Option<Handle> {
        self.open.get(id).and_then(|(_, handle)| handle.clone())
    }

    /// What is being written under a name, which is free then.
    pub(crate) fn take_writer(&mut self, id: &str) -> Option<Arc<Draft>> {
        match self.open.get(id) {
            Some((_, Some(Handle::Write(writer)))) => {
                let writer = Arc::clone(writer);
                self.open.remove(id);
                Some(writer)
            }
            _ => None,
        }
    }

    /// Frees a name, whatever is there.
    pub(crate) fn close(&mut self, id: &str) -> Option<Handle> {
        self.open.remove(id).and_then(|(_, handle)| handle)
    }

    /// The connection is gone: everything is closed, and stays so.
    pub(crate) fn close_all(&mut self) -> Vec<Handle> {
        self.closed = true;
        let open = std::mem::take(&mut self.open);
        open.into_values()
            .filter_map(|(_, handle)| handle)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outpost_files::{Files, Links};

    fn handle() -> Handle {
        let file = Files::default().open("/proc/self/status".as_ref(), Links::Follow);
        Handle::Read(Arc::new(file.unwrap()))
    }

    #[test]
    fn a_name_is_taken_until_it_is_closed() {
        let mut handles = Handles::new(2);
        let place = handles.reserve("a").unwrap();
        assert_eq!(handles.reserve("a"), Err(Occupied::Exists));
        assert!(handles.find("a").is_none(), "there is nothing yet");
        assert!(handles.fill("a", place, handle()).is_none());
        assert!(handles.find("a").is_some());
        handles.reserve("b").unwrap();
        assert_eq!(handles.reserve("c"), Err(Occupied::TooMany(2)));
        assert!(handles.close("a").is_some());
        assert!(handles.close("a").is_none());
        handles.reserve("c").unwrap();
    }

    #[test]
    fn what_was_closed_before_it_was_open_does_not_appear() {
        let mut handles = Handles::new(2);
        let early = handles.reserve("a").unwrap();
        handles.close("a");
        let late = handles.reserve("a").unwrap();
        assert!(handles.fill("a", early, handle()).is_some());
        handles.free("a", early);
        assert_eq!(
            handles.reserve("a"),
            Err(Occupied::Exists),
            "it is another's now"
        );
        assert!(handles.fill("a", late, handle()).is_none());
    }

    #[test]
    fn after_the_end_there_is_nothing() {
        let mut handles = Handles::new(2);
        let place = handles.reserve("a").unwrap();
        let other = handles.reserve("b").unwrap();
        handles.fill("a", place, handle());
        assert_eq!(handles.close_all().len(), 1);
        assert!(handles.fill("b", other, handle()).is_some());
        assert_eq!(handles.reserve("c"), Err(Occupied::Closed));
    }
}

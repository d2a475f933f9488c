//! Whose turn it is to change a file.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use outpost_client::Files;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Changes of one file follow each other: an edit is what was read, with
/// something else in it, and what another one wrote in between would be lost.
#[derive(Default)]
pub(super) struct Turns {
    /// By path, as long as somebody changes it or waits to.
    files: Mutex<BTreeMap<PathBuf, Weak<Turn<()>>>>,
}

impl Turns {
    /// Waits until nobody else here changes this file. Its turn ends when the
    /// guard is dropped.
    pub(super) async fn of(&self, files: &Files, path: PathBuf) -> OwnedMutexGuard<()> {
        // Two ways to one file are one file. A path that leads nowhere has only
        // its own name, and what is wrong with it is told by what is done next.
        let real = files.canonicalize(&path).await.unwrap_or(path);
        self.turn(real).lock_owned().await
    }

    fn turn(&self, path: PathBuf) -> Arc<Turn<()>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = files.get(&path).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Turn::new(()));
        files.insert(path, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_turn_and_is_forgotten_after_it() {
        let turns = Turns::default();
        let first = turns.turn("/a".into());
        assert!(Arc::ptr_eq(&first, &turns.turn("/a".into())));
        assert!(!Arc::ptr_eq(&first, &turns.turn("/b".into())));
        drop(first);
        let _other = turns.turn("/c".into());
        assert_eq!(turns.files.lock().unwrap().len(), 1);
    }
}

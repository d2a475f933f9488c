//! The memory of listings.

use outpost_files::{FileExecutor, Files, FilesError, Limits};
use outpost_types::WalkOptions;

use crate::executor::{OPTIONS, read_directory, sandboxed, walk};

#[test]
fn listing_without_memory_fails_while_it_is_built() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1500 {
        let name = format!("{number:0>200}");
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let options = WalkOptions {
        max_entries: 2000,
        ..OPTIONS
    };
    for op in [read_directory(folder.path()), walk(folder.path(), options)] {
        let in_process = FileExecutor::in_process(Files::default());
        let (sandboxed, _worker) = sandboxed(Limits::default());
        for executor in [in_process, sandboxed] {
            let mut taken = 0;
            let whole = executor.perform_within(op.clone(), &mut |bytes| {
                taken += bytes;
                true
            });
            assert!(taken >= 2 * whole.unwrap().listing_bytes().unwrap());
            let mut left = 20_000_usize;
            let failed = executor.perform_within(op.clone(), &mut |bytes| {
                let rest = left.checked_sub(bytes);
                left = rest.unwrap_or(left);
                rest.is_some()
            });
            assert!(matches!(failed, Err(FilesError::NoListingMemory)));
        }
    }
}

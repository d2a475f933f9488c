//! The methods that are file operations, such as `fs/remove` and `fs/walk`.

use outpost_engine::sandbox::WorkerAccess;
use outpost_protocol::{FileOp, FileReply, FileRequest, FileResult};

use super::FileService;
use crate::connection::Reply;

/// The approximate encoded size of an entry without its name.
const ENTRY_BYTES: usize = 64;

/// Performs a file operation and sends its reply.
pub(crate) async fn perform(service: FileService, request: FileRequest, reply: Reply) {
    let FileRequest { op, sandbox } = request;
    let is_listing = matches!(op, FileOp::ReadDirectory { .. } | FileOp::Walk { .. });
    let _permit = if is_listing {
        service.listing_permit().await
    } else {
        None
    };
    let access = if op.is_read_only() {
        WorkerAccess::Read
    } else {
        WorkerAccess::Write
    };
    let performed = service
        .execute(sandbox.as_ref(), access, move |executor| {
            executor.perform(op)
        })
        .await;
    let result = match performed {
        Ok((result, _)) => result,
        Err(error) => return reply.send::<()>(Err(error)),
    };
    let Some(bytes) = listing_bytes(&result) else {
        return reply.send(Ok(FileResult(result)));
    };
    // Listings must not pile up in front of a client that does not read.
    if let Some(reservation) = service.reserve_outbox(bytes).await {
        reply.send_large(FileResult(result), bytes, reservation);
    }
}

/// The approximate encoded size of a listing; none for any other reply.
fn listing_bytes(reply: &FileReply) -> Option<usize> {
    match reply {
        FileReply::Entries(entries) => Some(
            entries
                .iter()
                .map(|entry| entry.file_name.len() + ENTRY_BYTES)
                .sum(),
        ),
        FileReply::Walk(walk) => Some(
            walk.entries
                .iter()
                .map(|entry| entry.path.as_os_str().len() + ENTRY_BYTES)
                .sum(),
        ),
        _ => None,
    }
}

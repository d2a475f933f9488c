//! Reads and writes files through an executor.
//!
//! `cargo run -p outpost-client --example files`

use std::io::Write as _;

use outpost_client::{Executor, LocalExecutor, LocalOptions, Remove};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // With a `RemoteExecutor`, these are files of the server's host.
    let executor = LocalExecutor::new(LocalOptions::default())?;
    let files = executor.files();
    let directory = std::env::temp_dir().join(format!("outpost-files-{}", std::process::id()));
    files.create_directory(&directory, false).await?;

    // Small files in one call.
    let notes = directory.join("notes.txt");
    files.write(&notes, "first line\n").await?;
    let size = files.metadata(&notes).await?.size;
    writeln!(std::io::stdout(), "{} has {size} bytes", notes.display())?;

    // Large files as streams. The new content becomes visible with the commit.
    let large = directory.join("large.bin");
    let mut writer = files.create(&large).await?;
    writer.write_all(&vec![7; 1 << 20]).await?;
    writer.commit().await?;
    let mut content = Vec::new();
    files.open(&large).await?.read_to_end(&mut content).await?;
    assert_eq!(content.len(), 1 << 20);

    for entry in files.read_directory(&directory).await? {
        writeln!(std::io::stdout(), "{}", entry.file_name)?;
    }
    files.remove(&directory, Remove::default()).await?;
    executor.close().await?;
    Ok(())
}

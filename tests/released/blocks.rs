//! `fs/open` with `mode`, `fs/readBlock`, `fs/writeBlock` and `fs/close`.

use std::{fs, os::unix::fs::symlink};

use super::Replay;
use crate::outpost;

#[tokio::test]
async fn blocks_are_written_as_recorded() {
    let server = outpost().start().await;
    symlink("made", server.dir().join("dangling")).expect("a link");
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → fs/open {"handleId":"h","path":"{dir}/f","mode":"replace"}
            ← {"handleId":"h"}
            → fs/writeBlock {"handleId":"h","offset":0,"chunk":"aGVsbG8="}
            ← {}
            = f hello
            → fs/writeBlock {"handleId":"h","offset":5,"chunk":"IHdvcmxk"}
            ← {}
            → fs/writeBlock {"handleId":"h","offset":0,"chunk":"Sg=="}
            ← {}
            = f Jello world
            → fs/writeBlock {"handleId":"h","offset":20,"chunk":"c3BhcnNl"}
            ← {}
            = f Jello world.........sparse
            → fs/open {"handleId":"h","path":"{dir}/f","mode":"replace"}
            ← -32600 file handle `h` already exists
            = f Jello world.........sparse
            → fs/open {"handleId":"h2","path":"{dir}/f","mode":"replace"}
            ← {"handleId":"h2"}
            = f 
            → fs/close {"handleId":"h"}
            ← {}
            → fs/close {"handleId":"h"}
            ← {}
            → fs/open {"handleId":"l","path":"{dir}/dangling","mode":"replace","followSymlinks":false}
            ← {"handleId":"l"}
            → fs/writeBlock {"handleId":"l","offset":0,"chunk":"Sg=="}
            ← {}
            = made J
            "#,
        )
        .await;
}

#[tokio::test]
async fn block_errors_are_as_recorded() {
    let server = outpost().start().await;
    let dir = server.dir();
    fs::write(dir.join("f"), "hello world").expect("a file");
    let fifo = std::process::Command::new("mkfifo")
        .arg(dir.join("fifo"))
        .status();
    assert!(fifo.expect("mkfifo").success());
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → fs/open {"handleId":"m","path":"{dir}/f","mode":null}
            ← -32602 invalid type: null, expected string or map
            → fs/open {"handleId":"m","path":"{dir}/f","mode":"zzz"}
            ← -32602 unknown variant `zzz`, expected `read` or `replace`
            → fs/open {"handleId":"123456789012345678901234567890123","path":"{dir}/f"}
            ← -32600 file handle ID must not exceed 32 bytes
            → fs/open {"handleId":"","path":"{dir}/f"}
            ← {"handleId":""}
            → fs/open {"handleId":"e","path":"{dir}","mode":"replace"}
            ← -32603 Is a directory (os error 21)
            → fs/open {"handleId":"e","path":"{dir}/fifo","mode":"replace"}
            ← -32603 No such device or address (os error 6)
            → fs/open {"handleId":"e","path":"{dir}/fifo"}
            ← -32600 path `{path}/fifo` is not a file
            → fs/open {"handleId":"e","path":"{dir}"}
            ← -32600 path `{path}` is not a file
            → fs/readFile {"path":"{dir}"}
            ← -32600 path `{path}` is not a file
            → fs/open {"handleId":"e","path":"file:///dev/null","mode":"replace"}
            ← -32600 path `/dev/null` is not a file
            → fs/open {"handleId":"e","path":"{dir}/no/f","mode":"replace"}
            ← -32004 No such file or directory (os error 2)
            → fs/open {"handleId":"r","path":"{dir}/f"}
            ← {"handleId":"r"}
            → fs/writeBlock {"handleId":"r","offset":0,"chunk":"Sg=="}
            ← -32603 Bad file descriptor (os error 9)
            → fs/readBlock {"handleId":"r","offset":0,"len":5}
            ← {"chunk":"aGVsbG8=","eof":false}
            → fs/readBlock {"handleId":"r","offset":9223372036854775807,"len":5}
            ← -32600 Invalid argument (os error 22)
            → fs/readBlock {"handleId":"r","offset":0,"len":5}
            ← -32004 unknown file handle `r`
            → fs/readBlock {"handleId":"r","offset":0,"len":0}
            ← -32600 file read block length must be between 1 and 1048576
            → fs/open {"handleId":"w","path":"{dir}/w","mode":"replace"}
            ← {"handleId":"w"}
            → fs/writeBlock {"handleId":"w","offset":0,"chunk":""}
            ← -32600 file write block length must be between 1 and 1048576
            → fs/writeBlock {"handleId":"w","offset":9223372036854775807,"chunk":"Sg=="}
            ← -32600 file write range exceeds the signed 64-bit file offset limit
            → fs/writeBlock {"handleId":"w","offset":0,"chunk":"!"}
            ← -32602 Invalid symbol 33, offset 0.
            → fs/writeBlock {"handleId":"w","offset":0}
            ← -32602 missing field `chunk`
            → fs/writeBlock {"handleId":"w","offset":0,"chunk":"Sg=="}
            ← {}
            → fs/readBlock {"handleId":"w","offset":0,"len":1}
            ← -32603 Bad file descriptor (os error 9)
            → fs/writeBlock {"handleId":"w","offset":0,"chunk":"Sg=="}
            ← -32004 unknown file handle `w`
            → fs/writeBlock {"handleId":"w","offset":0,"chunk":""}
            ← -32600 file write block length must be between 1 and 1048576
            → fs/writeBlock {"handleId":"w","offset":9223372036854775807,"chunk":"Sg=="}
            ← -32600 file write range exceeds the signed 64-bit file offset limit
            "#,
        )
        .await;
}

#[tokio::test]
async fn handles_are_limited_to_128() {
    let server = outpost().start().await;
    fs::write(server.dir().join("f"), "").expect("a file");
    let mut replay = Replay::exec(&server).await;
    for number in 0..128 {
        let mode = ["read", "replace"][number % 2];
        let open = format!(
            r#"→ fs/open {{"handleId":"{number}","path":"{{dir}}/f","mode":"{mode}"}}
            ← {{"handleId":"{number}"}}"#
        );
        replay.run(&open).await;
    }
    replay
        .run(
            r#"
            → fs/open {"handleId":"more","path":"{dir}/f"}
            ← -32600 at most 128 file handles may be open per connection
            → fs/close {"handleId":"0"}
            ← {}
            → fs/open {"handleId":"more","path":"{dir}/f"}
            ← {"handleId":"more"}
            "#,
        )
        .await;
}

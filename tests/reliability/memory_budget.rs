//! Tests that hostile clients together cost the server a bounded amount of memory, and that
//! another client is served meanwhile.

use outpost_testkit::{Client, RawWebSocket, Server, TestTag, deadline, file_uri, sh};
use serde_json::json;

use crate::outpost;

const MIB: usize = 1024 * 1024;

/// The memory that the server may use under attack.
const MEMORY_KIB: u64 = 256 * 1024;

/// The memory of a server that holds nothing large.
const IDLE_KIB: u64 = 64 * 1024;

fn check_peak(server: &Server, limit_kib: u64) {
    let peak = server.stats().peak_rss_kib();
    assert!(peak < limit_kib, "the server took {peak} KiB");
}

/// Checks that a client can run a process, list a directory and read a file.
async fn check_served(server: &Server, client: &Client, round: &str) {
    assert_eq!(client.run(sh(round, "echo hi")).await.text(), "hi\n");
    let page = client.read(round, json!({})).await;
    assert_eq!(page["exitCode"], 0);
    let path = server.dir().join(round);
    std::fs::write(&path, vec![b'x'; 512 * 1024]).expect("a file");
    let read = client.call("fs/readFile", json!({"path": file_uri(&path)}));
    let base64 = read.await["dataBase64"].as_str().map(str::len);
    assert_eq!(base64, Some((512 * 1024_usize).div_ceil(3) * 4));
    let listed = json!({"path": file_uri(server.dir())});
    client.call("fs/readDirectory", listed).await;
}

/// Begins a message of 64 MiB on each connection, and sends most of it in the background.
fn send_unfinished(sockets: Vec<RawWebSocket>) -> Vec<tokio::task::JoinHandle<RawWebSocket>> {
    let send = |mut socket: RawWebSocket| async move {
        socket.begin(64 * MIB as u64).await;
        let part = vec![b'x'; MIB];
        for _ in 0..60 {
            if socket.write(&part).await.is_err() {
                break;
            }
        }
        socket
    };
    let sockets = sockets.into_iter();
    sockets.map(|socket| tokio::spawn(send(socket))).collect()
}

#[tokio::test]
async fn twelve_connections_that_never_initialize_hold_nothing() {
    let server = outpost().start().await;
    let client = server.client().await;
    let mut sockets = Vec::new();
    for _ in 0..12 {
        sockets.push(RawWebSocket::connect(server.address()).await);
    }
    for sent in send_unfinished(sockets) {
        sent.await.expect("all is read");
    }
    check_served(&server, &client, "victim").await;
    check_peak(&server, IDLE_KIB);
}

#[tokio::test]
async fn unfinished_messages_stay_within_the_budget() {
    for connections in [12, 100] {
        let server = outpost().start().await;
        let client = server.client().await;
        let mut sockets = Vec::new();
        for _ in 0..connections {
            let params = json!({"clientName": "hostile"});
            sockets.push(RawWebSocket::initialized(server.address(), &params).await);
        }
        let sending = send_unfinished(sockets);
        for round in 0..5 {
            check_served(&server, &client, &format!("round{round}")).await;
        }
        if connections < 100 {
            // Each is skipped for lack of memory, or waits for its last bytes.
            for sent in sending {
                sent.await.expect("all is read");
            }
        } else {
            sending.iter().for_each(tokio::task::JoinHandle::abort);
        }
        check_served(&server, &client, "after").await;
        check_peak(&server, MEMORY_KIB);
    }
}

#[tokio::test]
async fn largest_message_is_accepted_after_an_attack() {
    let server = outpost().start().await;
    let client = server.client().await;
    let params = json!({"clientName": "hostile"});
    let socket = RawWebSocket::initialized(server.address(), &params).await;
    let sending = send_unfinished(vec![socket]);
    for sent in sending {
        drop(sent.await.expect("all is read"));
    }
    let path = server.dir().join("large");
    // Almost 64 MiB as base64.
    let data = "QUFB".repeat(16 * MIB - 64);
    let written = client.call(
        "fs/writeFile",
        json!({"path": file_uri(&path), "dataBase64": data}),
    );
    written.await;
    let bytes = std::fs::metadata(&path).expect("a file").len();
    assert_eq!(bytes as usize, (16 * MIB - 64) * 3);
    check_peak(&server, MEMORY_KIB);
}

#[tokio::test]
async fn four_reads_of_a_sparse_file_hold_nothing() {
    let server = outpost().start().await;
    let client = server.client().await;
    let path = server.dir().join("sparse");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(400 * MIB as u64).expect("a sparse file");
    let mut sockets = Vec::new();
    for _ in 0..8 {
        let params = json!({"clientName": "hostile"});
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        for id in 1..5 {
            let read =
                json!({"id": id, "method": "fs/readFile", "params": {"path": file_uri(&path)}});
            socket.send(&read.to_string()).await;
        }
        sockets.push(socket);
    }
    for socket in &mut sockets {
        // Beyond the response to `initialize`, so the file is being sent.
        socket.read(64 * 1024).await;
    }
    check_served(&server, &client, "victim").await;
    check_peak(&server, IDLE_KIB);
}

/// Sends requests in the background whose answers are not read.
async fn send_unanswered(server: &Server) -> tokio::task::JoinHandle<()> {
    let params = json!({"clientName": "hostile"});
    let mut socket = RawWebSocket::initialized(server.address(), &params).await;
    tokio::spawn(async move {
        // The name of an unknown method is echoed.
        let echoed = "x".repeat(250);
        for id in 0..20_000 {
            let request = format!(r#"{{"id":"{id}{echoed}","method":"{echoed}"}}"#);
            socket.send(&request).await;
        }
    })
}

#[tokio::test]
async fn unread_answers_stay_within_the_budget() {
    let server = outpost().start().await;
    let client = server.client().await;
    let mut sending = Vec::new();
    for _ in 0..100 {
        sending.push(send_unanswered(&server).await);
    }
    for round in 0..5 {
        check_served(&server, &client, &format!("round{round}")).await;
    }
    check_peak(&server, MEMORY_KIB);
    sending.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Starts floods whose output is not read.
async fn start_floods(server: &Server, socket: &mut RawWebSocket, count: usize) {
    for id in 0..count {
        let mut start = json!({"argv": ["cat", "/dev/zero"], "cwd": "file:///", "env": {}});
        start["env"][TestTag::VARIABLE] = server.tag().as_str().into();
        start["env"]["PATH"] = "/usr/local/bin:/usr/bin:/bin".into();
        start["processId"] = format!("p{id}").into();
        let request = json!({"id": id + 1, "method": "process/start", "params": start});
        socket.send(&request.to_string()).await;
    }
}

/// Attacks a server with a hundred connections of three kinds.
async fn attack_with_a_hundred(server: &Server) {
    let client = server.client().await;
    let params = json!({"clientName": "hostile", "delivery": "acked"});
    let (mut unfinished, mut sending, mut floods) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..33 {
        unfinished.push(RawWebSocket::initialized(server.address(), &params).await);
        sending.push(send_unanswered(server).await);
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        start_floods(server, &mut socket, 2).await;
        floods.push(socket);
    }
    let unfinished = send_unfinished(unfinished);
    for round in 0..5 {
        check_served(server, &client, &format!("round{round}")).await;
    }
    unfinished.iter().for_each(tokio::task::JoinHandle::abort);
    sending.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn hundred_hostile_connections_stay_within_the_budget() {
    let server = outpost().start().await;
    attack_with_a_hundred(&server).await;
    check_peak(&server, MEMORY_KIB);
}

/// The budget is less then, and small allocations must not fail.
#[tokio::test]
async fn hundred_hostile_connections_end_no_server_with_little_memory() {
    let limited = outpost().after_shell("ulimit -v 400000");
    let server = limited.start().await;
    attack_with_a_hundred(&server).await;
    check_peak(&server, 400_000);
}

#[tokio::test]
async fn unread_floods_stay_within_the_budget() {
    let server = outpost().args(&["--window-bytes", "8MiB"]).start().await;
    let client = server.client().await;
    let params = json!({"clientName": "hostile", "delivery": "acked"});
    let mut hostile = RawWebSocket::initialized(server.address(), &params).await;
    start_floods(&server, &mut hostile, 100).await;
    deadline::poll_until("all processes", || {
        (server.tag().living().len() >= 100).then_some(())
    })
    .await;
    for round in 0..5 {
        check_served(&server, &client, &format!("round{round}")).await;
    }
    let flood = client.run(sh("flood", "seq 1 300000")).await.text();
    assert!(flood.ends_with("300000\n"), "its output is whole");
    check_peak(&server, MEMORY_KIB);
}

#[tokio::test]
async fn closed_connections_return_their_memory() {
    let server = outpost().start().await;
    let client = server.client().await;
    check_served(&server, &client, "victim").await;
    let before = server.stats().rss_kib();
    let params = json!({"clientName": "t", "detachedTtlMs": 0});
    for _ in 0..2 {
        let mut sockets = Vec::new();
        for _ in 0..600 {
            let mut socket = RawWebSocket::initialized(server.address(), &params).await;
            socket.read(2).await;
            sockets.push(socket);
        }
    }
    let limit = before + 6 * 1024;
    let returned = || (server.stats().rss_kib() < limit).then_some(());
    deadline::poll_until("the memory to be returned", returned).await;
}

/// Hostile connections of three kinds, which stay open.
#[tokio::test]
async fn hundreds_of_hostile_connections_stay_within_the_budget() {
    let server = outpost().start().await;
    let client = server.client().await;
    let path = server.dir().join("sparse");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(400 * MIB as u64).expect("a sparse file");
    let mut open = Vec::new();
    for number in 0..400 {
        let mut socket = RawWebSocket::connect(server.address()).await;
        // As much as a message before `initialize` may have, or more than that.
        let announced = if number % 2 == 0 { 64 * 1024 } else { 64 * MIB };
        socket.begin(announced as u64).await;
        let begun = vec![b'x'; 60 * 1024];
        socket.write(&begun).await.expect("it is read");
        open.push(socket);
    }
    check_served(&server, &client, "never_initialized").await;
    let params = json!({"clientName": "hostile"});
    for _ in 0..100 {
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        for id in 1..5 {
            let read = json!({"path": file_uri(&path)});
            let read = json!({"id": id, "method": "fs/readFile", "params": read});
            socket.send(&read.to_string()).await;
        }
        // Beyond the response to `initialize`, so the file is being sent.
        socket.read(64 * 1024).await;
        open.push(socket);
    }
    check_served(&server, &client, "sparse_files").await;
    let mut flooding = Vec::new();
    for _ in 0..50 {
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        flooding.push(tokio::spawn(async move {
            let echoed = "x".repeat(250);
            loop {
                let request = format!(r#"{{"id":"{echoed}","method":"{echoed}"}}"#);
                socket.send(&request).await;
            }
        }));
    }
    for round in 0..5 {
        check_served(&server, &client, &format!("unread_answers{round}")).await;
    }
    check_peak(&server, MEMORY_KIB);
    flooding.iter().for_each(tokio::task::JoinHandle::abort);
    drop(open);
}

/// Connections that hold as much as they may, do not read, and stay alive by their pings.
#[tokio::test]
async fn connections_that_do_not_read_give_way() {
    let server = outpost().start().await;
    let client = server.client().await;
    let path = server.dir().join("part");
    std::fs::write(&path, vec![b'x'; 2 * MIB]).expect("a file");
    let params = json!({"clientName": "hostile"});
    let mut sockets = Vec::new();
    for _ in 0..200 {
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        for id in 1..3 {
            let read = json!({"path": file_uri(&path)});
            let read = json!({"id": id, "method": "fs/readFile", "params": read});
            socket.send(&read.to_string()).await;
        }
        // Beyond the response to `initialize`, so the file is being sent.
        socket.read(64 * 1024).await;
        sockets.push(socket);
    }
    let large = server.dir().join("large");
    let data = "QUFB".repeat(14 * MIB);
    let params = json!({"path": file_uri(&large), "dataBase64": data});
    client.call("fs/writeFile", params).await;
    let bytes = std::fs::metadata(&large).expect("a file").len();
    assert_eq!(bytes as usize, 42 * MIB);
    check_served(&server, &client, "after").await;
    check_peak(&server, MEMORY_KIB);
}

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
async fn large_messages_before_initialize_are_not_held() {
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
async fn unread_files_are_not_held() {
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

#[tokio::test]
async fn unread_answers_stay_within_the_budget() {
    let server = outpost().start().await;
    let client = server.client().await;
    let mut sockets = Vec::new();
    for _ in 0..100 {
        let params = json!({"clientName": "hostile"});
        let mut socket = RawWebSocket::initialized(server.address(), &params).await;
        // The name of an unknown method is echoed.
        let echoed = "x".repeat(250);
        let mut requests = Vec::new();
        for id in 0..20_000 {
            let request = format!(r#"{{"id":"{id}{echoed}","method":"{echoed}"}}"#);
            requests.push(request);
        }
        sockets.push(tokio::spawn(async move {
            for request in requests {
                socket.send(&request).await;
            }
        }));
    }
    for round in 0..5 {
        check_served(&server, &client, &format!("round{round}")).await;
    }
    check_peak(&server, MEMORY_KIB);
    sockets.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn unread_floods_stay_within_the_budget() {
    let server = outpost().args(&["--window-bytes", "8MiB"]).start().await;
    let client = server.client().await;
    let params = json!({"clientName": "hostile", "delivery": "acked"});
    let mut hostile = RawWebSocket::initialized(server.address(), &params).await;
    for id in 0..100 {
        let mut start = json!({"argv": ["cat", "/dev/zero"], "cwd": "file:///", "env": {}});
        start["env"][TestTag::VARIABLE] = server.tag().as_str().into();
        start["env"]["PATH"] = "/usr/local/bin:/usr/bin:/bin".into();
        start["processId"] = format!("p{id}").into();
        let request = json!({"id": id + 1, "method": "process/start", "params": start});
        hostile.send(&request.to_string()).await;
    }
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

//! Calls that are called off at servers over HTTP. Up to 2025-11-25 a server is told so, and since
//! then the answer is no longer listened to.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
};

use outpost_mcp::{Ensemble, Limits};
use outpost_testkit::patience;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use crate::{
    cancelling::{LONG, call_off, long},
    stage::{call, on_each_stage, soon, text},
    web::Web,
};

/// Stands between a server and who speaks with it, and listens to what it is told.
struct Ear {
    url: String,
    heard: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
}

impl Ear {
    async fn at(web: &Web) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (port, shared) = (web.port, Arc::clone(&heard));
        let listening = tokio::spawn(async move {
            // They end with this task.
            let mut passing = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                passing.spawn(pass_on(near, far, Arc::clone(&shared)));
            }
        });
        Ear {
            url,
            heard,
            listening,
        }
    }

    /// Everything that the server was told, or is being.
    fn heard(&self) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        let text = String::from_utf8_lossy(&heard);
        let begins = text.match_indices("{\"jsonrpc\"");
        let messages = begins.filter_map(|(at, _)| {
            let mut rest = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            rest.next()?.ok()
        });
        messages.collect()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn pass_on(near: TcpStream, far: TcpStream, heard: Arc<Mutex<Vec<u8>>>) {
    let (mut asked, mut answered) = near.into_split();
    let (mut answers, mut asks) = far.into_split();
    let there = async {
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = asked.read(&mut piece).await {
            heard.lock().unwrap().extend_from_slice(&piece[..read]);
            asks.write_all(&piece[..read]).await?;
        }
        asks.shutdown().await
    };
    let back = async {
        let _ = copy(&mut answers, &mut answered).await;
        answered.shutdown().await
    };
    let _ = tokio::join!(there, back);
}

#[tokio::test]
async fn a_server_on_node_is_told_of_the_call() {
    on_each_stage(async |stage| {
        let web = Web::on_node().await;
        let ear = Ear::at(&web).await;
        let ensemble = stage.one(&json!({"url": ear.url}), &Limits::default());
        soon("the server", ensemble.settled()).await;
        call_off(&ensemble, LONG, long(), || ()).await;
        let told = |method: &'static str| {
            let heard = ear.heard().into_iter();
            heard
                .filter(|message| message["method"] == method)
                .collect()
        };
        let off: Vec<Value> = patience::seen("a call to be called off", || {
            let off: Vec<Value> = told("notifications/cancelled");
            (!off.is_empty()).then_some(off)
        })
        .await;
        let calls: Vec<Value> = told("tools/call");
        assert_eq!((calls.len(), off.len()), (1, 1), "{calls:?} {off:?}");
        assert_eq!(off[0]["params"]["requestId"], calls[0]["id"]);
        let sum = call(&ensemble, "get-sum", json!({"a": 2, "b": 3})).await;
        assert_eq!(text(&sum.unwrap()), "The sum of 2 and 3 is 5.");
        soon("its end", ensemble.close()).await;
    })
    .await;
}

/// Waits until so many calls are known to be called off.
async fn called_off(ensemble: &Ensemble, count: usize) {
    let seen = async {
        loop {
            let off = call(ensemble, "who_was_called_off", json!({})).await;
            let off = text(&off.unwrap()).split(',').count();
            assert!(off <= count, "{off} instead of {count}");
            if off == count {
                return;
            }
        }
    };
    soon("the calls to be given up", seen).await;
}

#[tokio::test]
async fn a_server_on_python_gives_up_what_was_called_off_and_nothing_else() {
    on_each_stage(async |stage| {
        let web = Web::on_python().await;
        let server = json!({"url": web.url, "supports_parallel_tool_calls": true});
        let ensemble = stage.one(&server, &Limits::default());
        soon("the server", ensemble.settled()).await;
        let about = ensemble.about("one").await.unwrap().unwrap();
        assert_eq!(about.protocol_version.to_string(), "2026-07-28");
        call_off(&ensemble, "wait", json!({}), || ()).await;
        called_off(&ensemble, 1).await;

        // Of three at once, two together.
        let (sender, mut steps) = mpsc::channel(64);
        let wait = || ensemble.call("one", "wait", serde_json::Map::new(), Some(&sender));
        let mut last = pin!(wait());
        {
            let mut two = pin!(async { tokio::join!(wait(), wait()) });
            for _ in 0..3 {
                let step = soon("a step of each", async {
                    tokio::select! {
                        answer = &mut last => panic!("nobody waited for {answer:?}"),
                        answer = &mut two => panic!("nobody waited for {answer:?}"),
                        step = steps.recv() => step,
                    }
                });
                assert!(step.await.is_some());
            }
        }
        tokio::select! {
            answer = &mut last => panic!("it was called off as well: {answer:?}"),
            () = called_off(&ensemble, 3) => {}
        }
        soon("its end", ensemble.close()).await;
    })
    .await;
}

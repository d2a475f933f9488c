//! Whatever a client says, in whatever order: the server lives, others are served, each process
//! has its events in order, and nothing is left when it is over.

use outpost_testkit::{Client, Mark, Server, Story, base64, frames};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::outpost;

/// One thing a client does.
#[derive(Clone, Debug)]
enum Deed {
    /// A message of any bytes.
    Bytes(Vec<u8>),
    /// A message of any JSON.
    Json(Value),
    /// A request that might make sense.
    Request(&'static str, Value),
    /// A notification, whether or not it makes sense.
    Notification(&'static str),
}

/// Few ids, so that deeds meet.
fn process_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", ""])
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let key = prop_oneof![
            Just("id".to_owned()),
            Just("method".to_owned()),
            Just("params".to_owned()),
            Just("result".to_owned()),
            Just("error".to_owned()),
            ".{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

fn start() -> impl Strategy<Value = Value> {
    let argv = prop::sample::select(vec![
        json!(["true"]),
        json!(["cat"]),
        json!(["sleep", "1000"]),
        json!(["/no/such/program"]),
        json!(["sh", "-c", "sleep 1000 & echo left; exit 3"]),
        json!([
            "sh",
            "-c",
            "head -c 300000 /dev/zero; setsid sleep 1000 & echo done"
        ]),
        json!(["sh", "-c", "trap '' TERM; kill -STOP $$"]),
        json!([]),
    ]);
    let timeout = prop::option::of(0_u64..50);
    (process_id(), argv, any::<(bool, bool)>(), timeout).prop_map(
        |(id, argv, (tty, stdin), timeout)| {
            json!({
                "processId": id, "argv": argv, "cwd": "file:///tmp", "tty": tty, "pipeStdin": stdin,
                "timeoutMs": timeout,
            })
        },
    )
}

fn request() -> impl Strategy<Value = Deed> {
    let write = (
        process_id(),
        0_usize..200_000,
        prop::option::of("[ab]{0,1}"),
        any::<bool>(),
    )
        .prop_map(|(id, bytes, write_id, close)| {
            let chunk = base64(vec![b'x'; bytes]);
            json!({"processId": id, "chunk": chunk, "writeId": write_id, "closeStdin": close})
        });
    let read = (process_id(), prop::option::of(0_u64..9), prop::option::of(0_u64..9000), 0_u64..40)
        .prop_map(|(id, after, bytes, wait)| {
            json!({"processId": id, "afterSeq": after, "maxBytes": bytes, "waitMs": wait})
        });
    let signals = vec![
        "interrupt",
        "kill",
        "stop",
        "continue",
        "hangup",
        "user1",
        "nonsense",
    ];
    let signal = (process_id(), prop::sample::select(signals))
        .prop_map(|(id, signal)| json!({"processId": id, "signal": signal}));
    let terminate = (process_id(), prop::option::of(0_u64..50), any::<bool>())
        .prop_map(|(id, grace, tree)| json!({"processId": id, "graceMs": grace, "tree": tree}));
    let resize = (process_id(), 0_u16..300, 0_u16..300).prop_map(
        |(id, rows, cols)| json!({"processId": id, "size": {"rows": rows, "cols": cols}}),
    );
    prop_oneof![
        6 => start().prop_map(|params| Deed::Request("process/start", params)),
        4 => write.prop_map(|params| Deed::Request("process/write", params)),
        3 => read.prop_map(|params| Deed::Request("process/read", params)),
        3 => signal.prop_map(|params| Deed::Request("process/signal", params)),
        3 => terminate.prop_map(|params| Deed::Request("process/terminate", params)),
        2 => resize.prop_map(|params| Deed::Request("process/resize", params)),
        1 => Just(Deed::Request("process/list", json!({}))),
        1 => Just(Deed::Request("environment/info", json!({}))),
        1 => Just(Deed::Request("initialize", json!({"clientName": "again"}))),
        1 => any_json().prop_map(|params| Deed::Request("process/start", params)),
        1 => any_json().prop_map(|params| Deed::Request("process/write", params)),
    ]
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let notification = prop::sample::select(vec!["initialized", "process/ack", "what/ever"]);
    let deed = prop_oneof![
        12 => request(),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Deed::Bytes),
        1 => any_json().prop_map(Deed::Json),
        1 => notification.prop_map(Deed::Notification),
    ];
    prop::collection::vec(deed, 1..40)
}

async fn act(client: &Client, deed: &Deed, requests: &mut Vec<i64>) {
    match deed {
        Deed::Bytes(bytes) => client.send_frames(vec![frames::binary(bytes)]).await,
        Deed::Json(value) => client.send(value).await,
        Deed::Notification(method) => client.notify(method, json!({})).await,
        Deed::Request(method, params) => {
            let mut params = params.clone();
            if *method == "process/start" && params.is_object() {
                let mark = json!({"PATH": "/usr/bin:/bin", Mark::VARIABLE: client.mark().as_str()});
                params["env"] = mark;
            }
            requests.push(client.request(method, params).await);
        }
    }
}

/// Does all of it, and checks what has to hold whatever it was.
async fn survive(server: &Server, deeds: &[Deed], handshake: bool, cut: bool) {
    let client = server.connect().await;
    if handshake {
        client.shake_hands().await;
    }
    let mut requests = Vec::new();
    for deed in deeds {
        act(&client, deed, &mut requests).await;
    }
    if cut {
        client.cut().await;
    } else {
        // A write to a process that doesn't read is answered when that ends.
        for id in ["a", "b", "c", ""] {
            let params = json!({"processId": id, "tree": true});
            requests.push(client.request("process/terminate", params.clone()).await);
            requests.push(client.request("process/terminate", params).await);
        }
        for request in requests {
            client.answer_message(request).await;
        }
        for id in ["a", "b", "c"] {
            in_order(&client.story(id));
        }
    }
    let other = server.client().await;
    other.is_alive().await;
}

/// Numbers from 1 without holes, as far as it went.
fn in_order(story: &Story) {
    let numbers: Vec<_> = story.events.iter().map(|event| event.seq()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn nothing_that_a_client_says_brings_the_server_down() {
    let runtime = Runtime::new().expect("a runtime");
    let launch = outpost().args(&["--session-ttl", "50ms", "--log-level", "off"]);
    let server = runtime.block_on(launch.start());
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let cases = (
        deeds(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.3),
    );
    let outcome = TestRunner::new(config).run(&cases, |(deeds, handshake, cut)| {
        runtime.block_on(survive(&server, &deeds, handshake, cut));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    // All sessions but the one that is attached have ended.
    runtime.block_on(server.mark().alive(1));
}

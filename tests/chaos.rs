//! Property test: random client requests. The server survives, serves other clients, keeps every
//! process's events in order and leaves no processes behind.

use outpost_testkit::{Client, EventLog, Server, TestTag, base64, frames};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::outpost;

/// One random client action.
#[derive(Clone, Debug)]
enum Action {
    /// A frame with arbitrary bytes.
    Bytes(Vec<u8>),
    /// A frame with arbitrary JSON.
    Json(Value),
    /// A request that may be valid.
    Request(&'static str, Value),
    /// A notification that may be valid.
    Notification(&'static str),
}

/// Picks from few ids, so that actions refer to the same process.
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

fn request() -> impl Strategy<Value = Action> {
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
        6 => start().prop_map(|params| Action::Request("process/start", params)),
        4 => write.prop_map(|params| Action::Request("process/write", params)),
        3 => read.prop_map(|params| Action::Request("process/read", params)),
        3 => signal.prop_map(|params| Action::Request("process/signal", params)),
        3 => terminate.prop_map(|params| Action::Request("process/terminate", params)),
        2 => resize.prop_map(|params| Action::Request("process/resize", params)),
        1 => Just(Action::Request("process/list", json!({}))),
        1 => Just(Action::Request("environment/info", json!({}))),
        1 => Just(Action::Request("initialize", json!({"clientName": "again"}))),
        1 => any_json().prop_map(|params| Action::Request("process/start", params)),
        1 => any_json().prop_map(|params| Action::Request("process/write", params)),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let notification = prop::sample::select(vec!["initialized", "process/ack", "what/ever"]);
    let action = prop_oneof![
        12 => request(),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Action::Bytes),
        1 => any_json().prop_map(Action::Json),
        1 => notification.prop_map(Action::Notification),
    ];
    prop::collection::vec(action, 1..40)
}

/// Performs an action. Adds the id of a request to `requests`, unless the request is longer than
/// `max_bytes`: the response to such a message does not have its id.
async fn perform(client: &Client, action: &Action, max_bytes: usize, requests: &mut Vec<i64>) {
    match action {
        Action::Bytes(bytes) => client.send_frames(vec![frames::binary(bytes)]).await,
        Action::Json(value) => client.send(value).await,
        Action::Notification(method) => client.notify(method, json!({})).await,
        Action::Request(method, params) => {
            let mut params = params.clone();
            if *method == "process/start" && params.is_object() {
                let tag =
                    json!({"PATH": "/usr/bin:/bin", TestTag::VARIABLE: client.tag().as_str()});
                params["env"] = tag;
            }
            let is_read = params.to_string().len() < max_bytes;
            let id = client.request(method, params).await;
            if is_read {
                requests.push(id);
            }
        }
    }
}

/// Performs the actions and checks the invariants.
async fn run_actions(server: &Server, actions: &[Action], handshake: bool, cut: bool) {
    let client = server.connect().await;
    if handshake {
        client.handshake().await;
    }
    // Before `initialize` the server reads messages up to 64 KiB only.
    let max_bytes = if handshake { usize::MAX } else { 60 * 1024 };
    let mut requests = Vec::new();
    for action in actions {
        perform(&client, action, max_bytes, &mut requests).await;
    }
    if cut {
        client.cut().await;
    } else {
        // A write to a process that doesn't read gets its response when the process ends.
        for id in ["a", "b", "c", ""] {
            let params = json!({"processId": id, "tree": true});
            requests.push(client.request("process/terminate", params.clone()).await);
            requests.push(client.request("process/terminate", params).await);
        }
        for request in requests {
            client.response_message(request).await;
        }
        for id in ["a", "b", "c"] {
            check_order(&client.event_log(id));
        }
    }
    let other = server.client().await;
    other.check_alive().await;
}

/// Checks that the sequence numbers run from 1 without gaps.
fn check_order(log: &EventLog) {
    let numbers: Vec<_> = log.events.iter().map(|event| event.seq()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn no_client_input_crashes_the_server() {
    let runtime = Runtime::new().expect("a runtime");
    let launch = outpost().args(&["--session-ttl", "50ms", "--log-level", "off"]);
    let server = runtime.block_on(launch.start());
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let cases = (
        actions(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.3),
    );
    let outcome = TestRunner::new(config).run(&cases, |(actions, handshake, cut)| {
        runtime.block_on(run_actions(&server, &actions, handshake, cut));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    // Only the attached session is left.
    runtime.block_on(server.tag().alive(1));
}

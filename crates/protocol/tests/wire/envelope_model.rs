//! A slow, obvious model of the envelope parser.

use outpost_protocol::{Incoming, MAX_JSON_VALUES, RequestId, TraceContext};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// JSON as written: members in order, with repeated keys.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Leaf(Value),
    Array(Vec<Tree>),
    Object(Vec<(Key, Tree)>),
}

/// A key, and whether it is written with unnecessary escapes.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) escaped: bool,
}

/// The expected kind of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Reading {
    Request {
        id: RequestId,
        method: String,
        params: Option<Value>,
        trace: Option<TraceContext>,
    },
    Notification {
        method: String,
        params: Option<Value>,
    },
    Response {
        id: RequestId,
    },
    Error {
        id: Option<RequestId>,
    },
    Malformed,
}

impl Reading {
    /// The kind that the parser returns.
    pub(crate) fn of(message: &[u8]) -> Self {
        let tree = |params: &serde_json::value::RawValue| {
            serde_json::from_str::<Value>(params.get()).expect("params are vetted")
        };
        match Incoming::parse(message) {
            Ok(Incoming::Request {
                id,
                method,
                params,
                trace,
                ..
            }) => Self::Request {
                id,
                method: method.into_owned(),
                params: params.map(tree),
                trace,
            },
            Ok(Incoming::Notification { method, params, .. }) => Self::Notification {
                method: method.into_owned(),
                params: params.map(tree),
            },
            Ok(Incoming::Response { id, .. }) => Self::Response { id },
            Ok(Incoming::Error { id }) => Self::Error { id },
            Err(_) => Self::Malformed,
        }
    }

    /// The kind by the rules.
    pub(crate) fn expected(tree: &Tree) -> Self {
        if tree.count() > MAX_JSON_VALUES || tree.repeats_a_key() {
            return Self::Malformed;
        }
        let Value::Object(members) = tree.value() else {
            return Self::Malformed;
        };
        let id = |id: &Value| match id {
            Value::String(text) => Some(RequestId::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(RequestId::Integer),
            _ => None,
        };
        let params = members
            .get("params")
            .filter(|params| !params.is_null())
            .cloned();
        match (members.get("method"), members.get("id")) {
            (Some(Value::String(method)), None) => Self::Notification {
                method: method.clone(),
                params,
            },
            (Some(Value::String(method)), Some(given)) => match id(given) {
                Some(id) => Self::Request {
                    id,
                    method: method.clone(),
                    params,
                    trace: members.get("trace").and_then(trace),
                },
                None => Self::Malformed,
            },
            (Some(_), _) => Self::Malformed,
            (None, None | Some(Value::Null)) => {
                if members.contains_key("error") && !members.contains_key("result") {
                    Self::Error { id: None }
                } else {
                    Self::Malformed
                }
            }
            (None, Some(given)) => match id(given) {
                Some(id) if members.contains_key("result") => Self::Response { id },
                Some(id) if members.contains_key("error") => Self::Error { id: Some(id) },
                _ => Self::Malformed,
            },
        }
    }
}

fn trace(trace: &Value) -> Option<TraceContext> {
    let members = trace.as_object()?;
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    Some(TraceContext {
        traceparent: text("traceparent")?,
        tracestate: text("tracestate")?,
    })
}

impl Tree {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Leaf(_) => 1,
            Self::Array(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            Self::Object(members) => {
                1 + members.iter().map(|(_, tree)| tree.count()).sum::<usize>()
            }
        }
    }

    pub(crate) fn repeats_a_key(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::Array(items) => items.iter().any(Self::repeats_a_key),
            Self::Object(members) => members.iter().enumerate().any(|(at, (key, tree))| {
                tree.repeats_a_key()
                    || members[..at]
                        .iter()
                        .any(|(other, _)| other.name == key.name)
            }),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Array(items) => items.iter().map(Self::value).collect(),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, tree)| (key.name.clone(), tree.value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// The text, with some white space.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Leaf(value) => value.to_string(),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(Self::text).collect();
                format!("[{}]", items.join(" ,"))
            }
            Self::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, tree)| format!("{}:\t{}", key.text(), tree.text()))
                    .collect();
                format!("{{ {}}}", members.join(",\n"))
            }
        }
    }
}

impl Key {
    fn text(&self) -> String {
        if self.escaped {
            let units = self
                .name
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"));
            format!("\"{}\"", units.collect::<String>())
        } else {
            Value::from(self.name.as_str()).to_string()
        }
    }
}

fn key() -> impl Strategy<Value = Key> {
    let name = prop_oneof![
        4 => "[a-z]{3}",
        1 => prop::sample::select(vec!["a", "id", "method", "params", ""]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    (name, any::<bool>()).prop_map(|(name, escaped)| Key { name, escaped })
}

fn leaf() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Fractions that binary represents exactly; others may lose their last digit.
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        any::<String>().prop_map(Value::from),
        "[a-z/]{0,12}".prop_map(Value::from),
    ]
    .prop_map(Tree::Leaf)
}

pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Tree::Array),
            prop::collection::vec((key(), inner), 0..8).prop_map(Tree::Object),
        ]
    })
}

/// Objects with relevant members, sometimes with valid values.
pub(crate) fn message() -> impl Strategy<Value = Tree> {
    let escaped = prop::bool::weighted(0.1);
    let member = |name: &'static str, value: BoxedStrategy<Tree>| {
        let value = prop_oneof![3 => value, 1 => tree()];
        prop::option::weighted(0.6, (escaped, value)).prop_map(move |member| {
            member.map(|(escaped, tree)| {
                (
                    Key {
                        name: name.to_owned(),
                        escaped,
                    },
                    tree,
                )
            })
        })
    };
    let trace = (
        prop::option::of("[0-9a-f-]{4}"),
        prop::option::of("[a-z=]{4}"),
    )
        .prop_map(|(traceparent, tracestate)| {
            let member = |name: &str, text: Option<String>| {
                let key = Key {
                    name: name.to_owned(),
                    escaped: false,
                };
                text.map(|text| (key, Tree::Leaf(Value::from(text))))
            };
            let members = [
                member("traceparent", traceparent),
                member("tracestate", tracestate),
            ];
            Tree::Object(members.into_iter().flatten().collect())
        });
    let members = (
        member("jsonrpc", Just(Tree::Leaf("2.0".into())).boxed()),
        member(
            "id",
            any::<i64>().prop_map(|id| Tree::Leaf(id.into())).boxed(),
        ),
        member(
            "method",
            "[a-z/]{1,9}"
                .prop_map(|name| Tree::Leaf(name.into()))
                .boxed(),
        ),
        member("params", tree().boxed()),
        member("trace", trace.boxed()),
        member("result", tree().boxed()),
        member("error", tree().boxed()),
        prop::option::weighted(0.2, (key(), tree())),
    );
    members
        .prop_map(
            |(jsonrpc, id, method, params, trace, result, error, other)| {
                [jsonrpc, id, method, params, trace, result, error, other]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
            },
        )
        .prop_shuffle()
        .prop_map(Tree::Object)
}

//! The words of a process, theirs and ours.

use std::collections::BTreeMap;

use outpost_engine as engine;
use outpost_protocol as wire;
use outpost_protocol::RpcError;

pub(crate) fn stream_name(stream: engine::Stream) -> wire::StreamName {
    match stream {
        engine::Stream::Stdout => wire::StreamName::Stdout,
        engine::Stream::Stderr => wire::StreamName::Stderr,
        engine::Stream::Pty => wire::StreamName::Pty,
    }
}

pub(crate) fn process_state(state: engine::State) -> wire::ProcessState {
    match state {
        engine::State::Running => wire::ProcessState::Running,
        engine::State::Exited => wire::ProcessState::Exited,
        engine::State::Closed => wire::ProcessState::Closed,
    }
}

pub(crate) fn process_trees(kind: engine::TreeKind) -> wire::ProcessTrees {
    match kind {
        engine::TreeKind::Cgroup => wire::ProcessTrees::Cgroup,
        engine::TreeKind::Keeper => wire::ProcessTrees::Keeper,
        engine::TreeKind::Group => wire::ProcessTrees::Group,
    }
}

pub(crate) fn write_status(status: engine::WriteStatus) -> wire::WriteStatus {
    match status {
        engine::WriteStatus::Accepted => wire::WriteStatus::Accepted,
        engine::WriteStatus::UnknownProcess => wire::WriteStatus::UnknownProcess,
        engine::WriteStatus::StdinClosed => wire::WriteStatus::StdinClosed,
        engine::WriteStatus::Starting => wire::WriteStatus::Starting,
    }
}

pub(crate) fn delivery(delivery: wire::Delivery) -> engine::Delivery {
    match delivery {
        wire::Delivery::Push => engine::Delivery::Push,
        wire::Delivery::Acked => engine::Delivery::Acked,
    }
}

pub(crate) fn signal(signal: wire::SignalName) -> engine::Signal {
    match signal {
        wire::SignalName::Interrupt => engine::Signal::Interrupt,
        wire::SignalName::Terminate => engine::Signal::Terminate,
        wire::SignalName::Kill => engine::Signal::Kill,
        wire::SignalName::Hangup => engine::Signal::Hangup,
        wire::SignalName::Quit => engine::Signal::Quit,
        wire::SignalName::Stop => engine::Signal::Stop,
        wire::SignalName::Continue => engine::Signal::Continue,
        wire::SignalName::User1 => engine::Signal::User1,
        wire::SignalName::User2 => engine::Signal::User2,
        wire::SignalName::WindowChange => engine::Signal::WindowChange,
    }
}

pub(crate) fn size(size: wire::Size) -> engine::Size {
    engine::Size {
        rows: size.rows,
        cols: size.cols,
    }
}

/// A terminal that nobody gave a size.
pub(crate) const DEFAULT_SIZE: engine::Size = engine::Size { rows: 24, cols: 80 };

/// The longest name that a client may give to something, in bytes,
const MAX_NAME_BYTES: usize = 256;
/// and to what belongs to its connection, whose face promises no bound.
const MAX_SCOPED_NAME_BYTES: usize = 1024;

/// A name that a client has given, in the member that is called `what`.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), RpcError> {
    check_length(what, name, MAX_NAME_BYTES)
}

/// The same for what belongs to a connection.
pub(crate) fn check_scoped_name(what: &str, name: &str) -> Result<(), RpcError> {
    check_length(what, name, MAX_SCOPED_NAME_BYTES)
}

fn check_length(what: &str, name: &str, limit: usize) -> Result<(), RpcError> {
    if name.len() > limit {
        return Err(RpcError::invalid_params(format!(
            "{what} must be at most {limit} bytes long"
        )));
    }
    Ok(())
}

/// A terminal has at least one row and one column.
pub(crate) fn check_size(size: wire::Size) -> Result<(), RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(RpcError::invalid_params(
            "size rows and cols must be greater than 0",
        ));
    }
    Ok(())
}

/// Variables that are set and none that is unset.
pub(crate) fn overlay(env: BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    env.into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect()
}

pub(crate) fn env_policy(policy: wire::EnvPolicy) -> engine::EnvPolicy {
    engine::EnvPolicy {
        inherit: match policy.inherit {
            wire::Inherit::All => engine::Inherit::All,
            wire::Inherit::Core => engine::Inherit::Core,
            wire::Inherit::None => engine::Inherit::None,
        },
        ignore_default_excludes: policy.ignore_default_excludes,
        exclude: policy.exclude,
        set: policy.set,
        include_only: policy.include_only,
    }
}

//! Shared test functions, with a subreaper for every child.

#[path = "../behaviour/support.rs"]
#[expect(dead_code, reason = "its own spawner has no subreapers")]
mod common;

use outpost_process::{Child, Spawner, SpawnerOptions, TreeChoice};

pub(crate) use common::*;

/// Replaces the function of the same name.
pub(crate) fn spawner() -> Spawner {
    subreaper_spawner()
}

/// A spawner that inherits the orphans of a killed factory.
pub(crate) fn adopting_spawner() -> Spawner {
    let options = SpawnerOptions {
        trees: TreeChoice::Subreaper,
        subreaper: Some(reaper_command()),
        adopts_orphans: true,
        ..SpawnerOptions::default()
    };
    Spawner::new(options).expect("a spawner starts")
}

/// The subreaper of a child.
pub(crate) fn reaper_of(child: &Child) -> i32 {
    parent(pid(child))
}

/// The factory of a child's subreaper.
pub(crate) fn factory_of(child: &Child) -> i32 {
    parent(reaper_of(child))
}

pub(crate) fn parent(pid: i32) -> i32 {
    let stat = stat(pid).expect("it is alive");
    let parent = stat.split(' ').nth(1).expect("a parent");
    parent.parse().expect("a number")
}

pub(crate) fn send(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process number");
    rustix::process::kill_process(pid, signal).expect("it is sent");
}

/// The pids of all processes with this argument.
pub(crate) fn pids_with_argument(mark: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0);
        arguments.any(|argument| argument == mark.as_bytes())
    };
    all().into_iter().filter(has).collect()
}

/// The children of a process, including zombies.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let pid = pid.to_string();
    let is_child =
        |child: &i32| stat(*child).is_some_and(|stat| stat.split(' ').nth(1) == Some(pid.as_str()));
    all().into_iter().filter(is_child).collect()
}

fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("there is a proc");
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    entries
        .filter_map(|entry| name(entry)?.parse().ok())
        .collect()
}

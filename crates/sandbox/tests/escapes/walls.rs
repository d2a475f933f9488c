//! What a confined process is and has.
#![expect(unsafe_code, reason = "a child gets limits before its program")]

use std::os::unix::process::CommandExt;

use outpost_sandbox::policy::{Entry, Place, Special};
use outpost_sandbox::{Access, Mounter, PrepareError, Program, Unenforceable};
use rustix::fs::Mode;
use rustix::process::{PidfdFlags, Resource, Rlimit};

use crate::cell::Cell;

#[test]
fn it_has_no_privileges_and_gets_none() {
    let cell = Cell::new();
    let status = cell.script("cat /proc/self/status /proc/1/status").stdout();
    let lines = |name: &str| {
        let lines = status.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(str::trim).collect::<Vec<_>>()
    };
    // Who reaps for it has none either, and executes nothing.
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(lines(name), ["0000000000000000"; 2], "{name}");
    }
    assert_eq!(lines("CapBnd:")[0], "0000000000000000");
    assert_eq!(lines("NoNewPrivs:"), ["1", "1"]);
    assert_eq!(lines("Seccomp:")[0], "2");
}

#[test]
fn it_has_three_streams_and_nothing_of_the_stages() {
    let cell = Cell::new();
    let open = cell.script("ls /proc/self/fd; env; ls -l /proc/self/exe");
    let open = open.stdout();
    let lines: Vec<_> = open.lines().collect();
    assert_eq!(&lines[..4], ["0", "1", "2", "3"], "the last is the folder");
    assert!(lines.contains(&"PATH=/usr/bin:/bin"), "{open}");
    assert!(!open.contains("escape"), "{open}");
    // Of who reaps for it there are numbers at most, and no way to what is behind them.
    let seen = cell.script("readlink /proc/1/fd/*; cat /proc/1/environ; head -c 1 /proc/1/fd/*");
    assert_eq!(seen.stdout(), "");
}

/// Who mounts needs others for a while.
#[test]
fn its_mask_and_its_limits_are_those_it_was_started_with() {
    let mut cell = Cell::new();
    let mut entries = vec![
        Entry::new(Place::Special(Special::Minimal), Access::Read),
        Entry::new(Place::Path(cell.plan.cwd.clone()), Access::Write),
    ];
    // Of these there are more than descriptors.
    for number in 0..100 {
        let file = cell.file(cell.outside(&number.to_string()));
        entries.push(Entry::new(Place::Path(file), Access::Read));
    }
    cell.follow_entries(entries);
    let (mut command, _hold) = cell.command(&[
        "/bin/sh".as_ref(),
        "-c".as_ref(),
        "umask; ulimit -n; stat -c %a / /dev \"${PWD%/*}\"".as_ref(),
    ]);
    let limited = || {
        rustix::process::umask(Mode::from_raw_mode(0o077));
        let few = Rlimit {
            current: Some(64),
            maximum: Some(64),
        };
        rustix::process::setrlimit(Resource::Nofile, few)?;
        Ok(())
    };
    // SAFETY: it makes system calls, and nothing is allocated.
    unsafe { command.pre_exec(limited) };
    let output = command.output().expect("it runs");
    // What leads to the workspace is as open as it is otherwise.
    let around = match crate::MOUNTER {
        Mounter::Stage => 755,
        Mounter::Bubblewrap => 700,
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("0077\n64\n755\n755\n{around}\n");
    assert_eq!(said, expected, "{output:?}");
}

#[test]
fn signals_and_codes_come_through() {
    let cell = Cell::new();
    assert_eq!(cell.script("exit 7").code(), 7);
    assert_eq!(cell.script("kill -TERM $$").code(), 143);
    assert_eq!(cell.script("kill -KILL $$").code(), 137);
    let masks = cell.script("cat /proc/self/status").stdout();
    let mask = |name: &str| {
        let line = masks.lines().find_map(|line| line.strip_prefix(name));
        line.map(|mask| mask.trim().to_owned())
    };
    assert_eq!(mask("SigIgn:").as_deref(), Some("0000000000000000"));
    assert_eq!(mask("SigBlk:").as_deref(), Some("0000000000000000"));
}

#[test]
fn this_host_can_enforce_it_and_says_with_what() {
    let cell = Cell::new();
    let means = cell.sandbox().preflight().expect("all is here");
    assert!(means.version.starts_with("bubblewrap "), "{means:?}");
    assert!(means.bubblewrap.is_absolute());
    assert_eq!(means.mounter, crate::MOUNTER);
}

#[test]
fn what_the_stages_need_is_asked_for_before_anything_is_started() {
    let mut cell = Cell::new();
    let program = || Program {
        candidates: b"/bin/true\0".to_vec(),
        argv: b"true\0".to_vec(),
        env: Vec::new(),
        cwd: "/".into(),
    };
    cell.plan.rules.remove(0);
    let refused = cell.sandbox().confine(&cell.plan, program());
    assert!(matches!(refused, Err(PrepareError::Library(_))));
    let cell = Cell::new().and(Access::Deny, "/proc".as_ref());
    let refused = cell.sandbox().confine(&cell.plan, program());
    assert!(matches!(refused, Err(PrepareError::Needed(_))));
}

#[test]
fn there_may_be_more_exceptions_than_bubblewrap_takes_unless_it_mounts() {
    let mut cell = Cell::new();
    let first = cell.file(cell.inside("0"));
    for number in 0..3000 {
        let mut rule = crate::cell::rule(Access::Deny, &first);
        rule.path = cell.inside(&number.to_string());
        cell.plan.rules.push(rule);
    }
    let program = Program {
        candidates: Vec::new(),
        argv: Vec::new(),
        env: Vec::new(),
        cwd: "/".into(),
    };
    let prepared = cell.sandbox().confine(&cell.plan, program);
    match crate::MOUNTER {
        Mounter::Bubblewrap => assert!(matches!(prepared, Err(PrepareError::TooLong(_)))),
        Mounter::Stage => assert!(prepared.is_ok()),
    }
}

#[test]
fn a_reason_names_what_to_install() {
    let words = Unenforceable::NoBubblewrap.to_string();
    assert!(words.contains("package bubblewrap"), "{words}");
}

/// What is held on the host goes when nothing lives inside, and not because nobody could look.
#[test]
fn not_to_know_is_not_to_be_gone() {
    let cell = Cell::new();
    let (_, mut hold) = cell.command(&["/bin/true".as_ref()]);
    hold.first().expect_err("nobody was named");
    let own = rustix::process::getpid();
    let first = rustix::process::pidfd_open(own, PidfdFlags::empty());
    hold.hear_of(first.ok());
    assert!(matches!(hold.first(), Ok(Some(_))), "it can be waited for");
    let (_, hold) = cell.alone().command(&["/bin/true".as_ref()]);
    assert!(matches!(hold.first(), Ok(None)), "there is no inside");
}

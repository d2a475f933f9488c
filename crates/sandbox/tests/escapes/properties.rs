//! Properties of a sandboxed process.
#![expect(unsafe_code, reason = "limits are set before exec")]

use std::os::unix::process::CommandExt;

use outpost_sandbox::policy::{Entry, SpecialPath};
use outpost_sandbox::{Access, Level, Mounter, PrepareError, Unenforceable};
use rustix::fs::Mode;
use rustix::process::{PidfdFlags, Resource, Rlimit};

use crate::fixture::Fixture;

#[test]
fn process_has_no_privileges() {
    let fixture = Fixture::new();
    let status = fixture
        .script("cat /proc/self/status /proc/1/status")
        .stdout();
    let lines = |name: &str| {
        let lines = status.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(str::trim).collect::<Vec<_>>()
    };
    // Bubblewrap's first process has none either, and executes nothing. It is hidden if it made the mounts.
    let processes = match crate::MOUNTER {
        Mounter::Helper => 2,
        Mounter::Bubblewrap => 1,
    };
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(lines(name), vec!["0000000000000000"; processes], "{name}");
    }
    assert_eq!(lines("CapBnd:")[0], "0000000000000000");
    assert_eq!(lines("NoNewPrivs:"), vec!["1"; processes]);
    assert_eq!(lines("Seccomp:")[0], "2");
}

#[test]
fn process_inherits_only_three_streams_and_its_environment() {
    let fixture = Fixture::new();
    let open = fixture.script("ls /proc/self/fd; env; ls -l /proc/self/exe");
    let open = open.stdout();
    let lines: Vec<_> = open.lines().collect();
    assert_eq!(
        &lines[..4],
        ["0", "1", "2", "3"],
        "the last is the directory itself"
    );
    assert!(lines.contains(&"PATH=/usr/bin:/bin"), "{open}");
    assert!(!open.contains("escape"), "{open}");
    // Descriptors of bubblewrap's first process can't be resolved or opened.
    let seen = fixture.script("readlink /proc/1/fd/*; cat /proc/1/environ; head -c 1 /proc/1/fd/*");
    assert_eq!(seen.stdout(), "");
}

/// The mounter changes its umask, and needs descriptors.
#[test]
fn umask_and_limits_are_preserved() {
    let mut fixture = Fixture::new();
    let mut entries = vec![
        Entry::special(SpecialPath::Minimal, Access::Read),
        Entry::path(fixture.plan.cwd.clone(), Access::Write),
    ];
    // More mounts than the limit of descriptors.
    for number in 0..100 {
        let file = fixture.file(fixture.outside(&number.to_string()));
        entries.push(Entry::path(file, Access::Read));
    }
    fixture.plan_entries(entries);
    let (mut command, _resources) = fixture.command(&[
        "/bin/sh".as_ref(),
        "-c".as_ref(),
        "umask; ulimit -n; stat -c %a / /dev \"${PWD%/*}\"".as_ref(),
    ]);
    let set_limits = || {
        rustix::process::umask(Mode::from_raw_mode(0o077));
        let limit = Rlimit {
            current: Some(64),
            maximum: Some(64),
        };
        rustix::process::setrlimit(Resource::Nofile, limit)?;
        Ok(())
    };
    // SAFETY: the closure makes only system calls and doesn't allocate.
    unsafe { command.pre_exec(set_limits) };
    let output = command.output().expect("run");
    // The mode of the workspace's parent directory.
    let parent_mode = match crate::MOUNTER {
        Mounter::Helper => 755,
        Mounter::Bubblewrap => 700,
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = format!("0077\n64\n755\n755\n{parent_mode}\n");
    assert_eq!(stdout, expected, "{output:?}");
}

#[test]
fn signals_and_exit_codes_are_passed_on() {
    let fixture = Fixture::new();
    assert_eq!(fixture.script("exit 7").code(), 7);
    assert_eq!(fixture.script("kill -TERM $$").code(), 143);
    assert_eq!(fixture.script("kill -KILL $$").code(), 137);
    let masks = fixture.script("cat /proc/self/status").stdout();
    let mask = |name: &str| {
        let line = masks.lines().find_map(|line| line.strip_prefix(name));
        line.map(|mask| mask.trim().to_owned())
    };
    assert_eq!(mask("SigIgn:").as_deref(), Some("0000000000000000"));
    assert_eq!(mask("SigBlk:").as_deref(), Some("0000000000000000"));
}

#[test]
fn preflight_reports_bubblewrap_and_mounter() {
    let fixture = Fixture::new();
    let support = fixture.sandbox().preflight().expect("host is supported");
    assert!(support.version.starts_with("bubblewrap "), "{support:?}");
    assert!(support.bubblewrap.is_absolute());
    assert_eq!(support.mounter, crate::MOUNTER);
}

/// Root owns these files, and most need no capability to be read.
#[test]
fn kernel_memory_and_keys_are_hidden() {
    let fixture = Fixture::new();
    let files = "kcore keys kpagecgroup kpagecount kpageflags slabinfo timer_list \
                 timer_stats sched_debug latency_stats vmallocinfo allocinfo pagetypeinfo interrupts";
    let mut count = 0;
    for name in files.split(' ') {
        let path = format!("/proc/{name}");
        if fixture.unsandboxed(&["read", &path]).code() == 0 {
            count += 1;
            fixture
                .sandboxed(&["read", &path])
                .assert_fails("Permission denied");
        }
    }
    assert!(count > 0, "every kernel has some of them");
    for path in ["/proc/acpi", "/proc/scsi", "/sys/firmware"] {
        if fixture.unsandboxed(&["list", path]).code() == 0 {
            fixture
                .sandboxed(&["list", path])
                .assert_fails("Permission denied");
        }
    }
    fixture
        .sandboxed(&["read", "/proc/meminfo"])
        .assert_success();
}

#[test]
fn plan_that_denies_proc_is_rejected() {
    let fixture = Fixture::new().and(Access::Deny, "/proc".as_ref());
    let rejected = fixture.sandbox().prepare(&fixture.plan, fixture.program());
    assert!(matches!(rejected, Err(PrepareError::ProcDenied(_))));
}

#[test]
fn many_rules_are_rejected_only_with_mounts_by_bubblewrap() {
    let mut fixture = Fixture::new();
    let first = fixture.file(fixture.inside("0"));
    for number in 0..3000 {
        let mut rule = crate::fixture::rule(Access::Deny, &first);
        rule.path = fixture.inside(&number.to_string());
        fixture.plan.rules.push(rule);
    }
    let prepared = fixture.sandbox().prepare(&fixture.plan, fixture.program());
    match crate::MOUNTER {
        Mounter::Bubblewrap => assert!(matches!(prepared, Err(PrepareError::TooManyArguments(_)))),
        Mounter::Helper => assert!(prepared.is_ok()),
    }
}

#[test]
fn error_names_the_package_to_install() {
    let message = Unenforceable::NoBubblewrap.to_string();
    assert!(message.contains("package bubblewrap"), "{message}");
}

/// An unknown process 1 is an error, not the end of the sandbox.
#[test]
fn unknown_init_process_is_an_error() {
    let fixture = Fixture::new();
    let (_, mut resources) = fixture.command(&["/bin/true".as_ref()]);
    resources.init().expect_err("no pidfd yet");
    let own = rustix::process::getpid();
    let init = rustix::process::pidfd_open(own, PidfdFlags::empty());
    resources.set_init(init.ok());
    assert!(matches!(resources.init(), Ok(Some(_))), "known");
    if crate::HAS_LANDLOCK {
        let fixture = fixture.at(Level::Landlock);
        let (_, resources) = fixture.command(&["/bin/true".as_ref()]);
        assert!(matches!(resources.init(), Ok(None)), "no PID namespace");
    }
}

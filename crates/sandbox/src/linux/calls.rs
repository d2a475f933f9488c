//! The system calls that are refused to a confined process, as plain tables.

use std::ffi::{c_int, c_long};

use crate::{Level, Network};

/// What has to hold of an argument.
#[derive(Copy, Clone, Debug)]
pub(super) enum Condition {
    /// None of these bits is set.
    NoBit { argument: u32, bits: u32 },
    /// The same, but only where another argument has one of its own set: otherwise the kernel doesn't
    /// look, and whatever happens to be there is there.
    NoBitIf {
        asked: u32,
        any: u32,
        argument: u32,
        bits: u32,
    },
    /// It is none of these.
    NoneOf {
        argument: u32,
        values: &'static [u32],
    },
    /// It is one of these, as far as the mask goes.
    OneOf {
        argument: u32,
        mask: u32,
        values: &'static [u32],
    },
}

/// Never, and what is said instead.
pub(super) fn forbidden() -> impl Iterator<Item = (c_long, c_int)> {
    let groups = [
        RINGS,
        STRANGERS,
        KEYS,
        MOUNTS,
        NAMESPACES,
        KERNEL,
        #[cfg(target_arch = "x86_64")]
        PORTS,
    ];
    let refused = groups.into_iter().flatten();
    refused
        .map(|call| (*call, libc::EPERM))
        .chain(OPAQUE.iter().map(|call| (*call, libc::ENOSYS)))
}

/// What they would do is behind a pointer, so they count as missing: programs then use `clone` and
/// `openat`, which can be looked into.
const OPAQUE: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// What goes by such a ring is seen by no filter.
const RINGS: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The memory and the descriptors of other processes.
const STRANGERS: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
];

/// Keyrings belong to users and sessions of the host, whatever the namespace.
const KEYS: &[c_long] = &[libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl];

/// As on every architecture, since calls are numbered alike. Not everybody's headers know it yet.
const OPEN_TREE_ATTR: c_long = 467;

const MOUNTS: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
];

const NAMESPACES: &[c_long] = &[libc::SYS_setns];

/// Parts of the kernel that belong to the whole host.
const KERNEL: &[c_long] = &[
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const PORTS: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];

/// Every kind of namespace. What a thread or a child shares or doesn't share otherwise is its own
/// business.
const NAMESPACE_BITS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// In `unshare` alone; in `clone` the bit is part of the signal.
const TIME_BIT: u32 = 0x80;

/// What lets whoever runs a file be its owner or of its group. Such a file would outlast the sandbox,
/// and work where no filter is. In a mode alone, directories that pass on their group look the same.
const RIGHTS_OF_OTHERS: u32 = libc::S_ISUID | libc::S_ISGID;

/// What makes a file of an `open`; the mode means nothing otherwise.
const MAKES_A_FILE: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// The calls that take the mode of a file, and where.
const MODES: &[(c_long, u32)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// The calls that may make a file, and where their flags are; the mode comes next.
const OPENINGS: &[(c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// What types into a terminal, and so for whoever reads from it next.
const TYPING: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Inside a network namespace of its own these lead nowhere. `AF_UNIX` would lead to every socket of
/// the host that can be seen, read-only or not; others know no namespaces.
const DOMAINS_INSIDE: &[u32] = &[
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

const DOMAINS_OUTSIDE: &[u32] = &[
    libc::AF_UNIX as u32,
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

/// The only one of the above that has pairs.
const PAIR_DOMAINS: &[u32] = &[libc::AF_UNIX as u32];

/// The kind of a socket, without the flags that may be in the same argument.
const KIND: u32 = 0xf;

/// Pairs whose ends can't be turned to anybody else. With datagrams, each message may have an
/// address of its own.
const PAIRS: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32];

/// Only if all conditions hold.
pub(super) fn conditional(network: Network, level: Level) -> Vec<(c_long, Vec<Condition>)> {
    let domains = |values| Condition::OneOf {
        argument: 0,
        mask: u32::MAX,
        values,
    };
    let mut calls = vec![
        (
            libc::SYS_ioctl,
            vec![Condition::NoneOf {
                argument: 1,
                values: TYPING,
            }],
        ),
        (
            libc::SYS_clone,
            vec![Condition::NoBit {
                argument: 0,
                bits: NAMESPACE_BITS,
            }],
        ),
        (
            libc::SYS_unshare,
            vec![Condition::NoBit {
                argument: 0,
                bits: NAMESPACE_BITS | TIME_BIT,
            }],
        ),
    ];
    calls.extend(MODES.iter().map(|(call, argument)| {
        let (argument, bits) = (*argument, RIGHTS_OF_OTHERS);
        (*call, vec![Condition::NoBit { argument, bits }])
    }));
    calls.extend(OPENINGS.iter().map(|(call, flags)| {
        let mode = Condition::NoBitIf {
            asked: *flags,
            any: MAKES_A_FILE,
            argument: flags + 1,
            bits: RIGHTS_OF_OTHERS,
        };
        (*call, vec![mode])
    }));
    let (own, kinds) = match (network, level) {
        (Network::Restricted, Level::Namespaces) => (DOMAINS_INSIDE, Some(PAIRS)),
        // Every one of them would be the host's.
        (Network::Restricted, Level::Landlock) => (&[][..], Some(PAIRS)),
        (Network::Enabled, _) => (DOMAINS_OUTSIDE, None),
    };
    let kinds = kinds.map(|values| Condition::OneOf {
        argument: 1,
        mask: KIND,
        values,
    });
    let pairs = [Some(domains(PAIR_DOMAINS)), kinds];
    calls.push((libc::SYS_socket, vec![domains(own)]));
    calls.push((libc::SYS_socketpair, pairs.into_iter().flatten().collect()));
    calls
}

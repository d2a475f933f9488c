//! The system calls that are refused to a confined process, as plain tables.

use std::ffi::{c_int, c_long};

use crate::Network;

/// What has to hold of an argument.
#[derive(Copy, Clone, Debug)]
pub(super) enum Condition {
    /// None of these bits is set.
    NoBit { argument: u32, bits: u32 },
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
    // What it would do can't be seen from outside, so it counts as missing: libraries then use
    // `clone`, which can be looked into.
    refused
        .map(|call| (*call, libc::EPERM))
        .chain([(libc::SYS_clone3, libc::ENOSYS)])
}

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

const MOUNTS: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
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

/// The kind of a socket, without the flags that may be in the same argument.
const KIND: u32 = 0xf;

/// Pairs whose ends can't be turned to anybody else. With datagrams, each message may have an
/// address of its own.
const PAIRS: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32];

/// Only if all conditions hold.
pub(super) fn conditional(network: Network) -> Vec<(c_long, Vec<Condition>)> {
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
    match network {
        Network::Restricted => {
            let pairs = Condition::OneOf {
                argument: 1,
                mask: KIND,
                values: PAIRS,
            };
            calls.push((libc::SYS_socket, vec![domains(DOMAINS_INSIDE)]));
            calls.push((libc::SYS_socketpair, vec![pairs]));
        }
        Network::Enabled => calls.push((libc::SYS_socket, vec![domains(DOMAINS_OUTSIDE)])),
    }
    calls
}

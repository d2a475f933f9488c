//! Tables of the system calls that are forbidden to a sandboxed process.

use std::ffi::{c_int, c_long};

use super::Sockets;

/// A condition on the arguments of a system call.
#[derive(Copy, Clone, Debug)]
pub(super) enum Condition {
    /// None of these bits is set in the argument.
    NoBit { argument: u32, bits: u32 },
    /// None of `bits` is set in `argument`, unless all of `flag_bits` are clear in `flags_argument`. Then
    /// the kernel ignores `argument`, whose value is arbitrary.
    NoBitIf {
        flags_argument: u32,
        flag_bits: u32,
        argument: u32,
        bits: u32,
    },
    /// The argument is none of these values.
    NoneOf {
        argument: u32,
        values: &'static [u32],
    },
    /// The argument, masked, is one of these values.
    OneOf {
        argument: u32,
        mask: u32,
        values: &'static [u32],
    },
    /// If `if_argument` is `if_value`, the argument, masked, is one of these values.
    OneOfIf {
        if_argument: u32,
        if_value: u32,
        argument: u32,
        mask: u32,
        values: &'static [u32],
    },
}

/// Returns the forbidden system calls, each with the errno that it fails with.
pub(super) fn forbidden() -> impl Iterator<Item = (c_long, c_int)> {
    let groups = [
        IO_URING,
        OTHER_PROCESSES,
        KEYRINGS,
        MOUNTS,
        NAMESPACES,
        KERNEL,
        #[cfg(target_arch = "x86_64")]
        IO_PORTS,
    ];
    groups
        .into_iter()
        .flatten()
        .map(|call| (*call, libc::EPERM))
        .chain(OPAQUE.iter().map(|call| (*call, libc::ENOSYS)))
}

/// Their arguments are behind a pointer, which a filter can't inspect. With ENOSYS, programs fall back to
/// `clone` and `openat`.
const OPAQUE: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Operations submitted through a ring bypass the filter.
const IO_URING: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Access to memory and descriptors of other processes.
const OTHER_PROCESSES: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
];

/// Keyrings belong to users and sessions of the host and are not namespaced.
const KEYRINGS: &[c_long] = &[libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl];

/// Has this number on every architecture. Missing in the `libc` crate.
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

/// Kernel facilities that affect the whole host.
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
const IO_PORTS: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];

/// Flags of `clone` and `unshare` that create a namespace.
const NAMESPACE_BITS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// CLONE_NEWTIME, valid only in `unshare`: in `clone` this bit is part of the signal number.
const NEW_TIME_BIT: u32 = 0x80;

/// Set-user-ID and set-group-ID. A file with these bits would outlive the sandbox and give its owner's
/// rights to processes outside. Also rejects set-group-ID on directories with `chmod`: a mode doesn't
/// show the file type.
const SETID_BITS: u32 = libc::S_ISUID | libc::S_ISGID;

/// Flags of `open` that create a file. Without them the mode argument is ignored.
const CREATE_FLAGS: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// System calls that take a file mode, with the index of that argument.
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

/// System calls that may create a file, with the index of their flags. The mode is the next argument.
const OPENS: &[(c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Terminal requests that inject input, which another reader of the terminal would execute.
const INPUT_INJECTION: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Requests of `fcntl` that make `open` in other processes wait: a lease on a readable file delays
/// conflicting opens everywhere on the host for up to `/proc/sys/fs/lease-break-time`, 45 seconds.
const LEASES: &[u32] = &[libc::F_SETLEASE as u32, F_SETDELEG];

/// Linux 6.19. Missing in the `libc` crate.
const F_SETDELEG: u32 = 1024 + 16;

/// Socket families that are sandboxed by a network namespace. `AF_UNIX` isn't: it reaches every socket
/// file that is visible, even on a read-only mount. Other families have no namespaces.
const NAMESPACED_FAMILIES: &[u32] = &[
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

/// Socket families that are allowed with network access, or if unix sockets are supervised.
const NETWORK_FAMILIES: &[u32] = &[
    libc::AF_UNIX as u32,
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

/// The only one of these families that supports `socketpair`.
const PAIR_FAMILIES: &[u32] = &[libc::AF_UNIX as u32];

/// Masks the socket type, without SOCK_CLOEXEC and SOCK_NONBLOCK.
const TYPE_MASK: u32 = 0xf;

/// Types of unix sockets that send to the peer of their connection only. Each message of a datagram
/// socket may have an address of its own.
const CONNECTED_TYPES: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32];

/// A socket option that returns a pidfd of the process that connected, which is the supervisor.
/// Missing in the `libc` crate.
const SO_PEERPIDFD: u32 = 77;

/// Returns the system calls that the supervisor performs or records.
pub(super) fn supervised(sockets: Sockets) -> &'static [c_long] {
    match sockets {
        Sockets::Supervised => &[libc::SYS_connect, libc::SYS_listen],
        Sockets::Pairs | Sockets::Namespaced | Sockets::Host => &[],
    }
}

/// Returns the system calls that are allowed only if all their conditions hold.
pub(super) fn conditional(sockets: Sockets) -> Vec<(c_long, Vec<Condition>)> {
    let families = |values| Condition::OneOf {
        argument: 0,
        mask: u32::MAX,
        values,
    };
    let mut calls = vec![
        (
            libc::SYS_ioctl,
            vec![Condition::NoneOf {
                argument: 1,
                values: INPUT_INJECTION,
            }],
        ),
        (
            libc::SYS_fcntl,
            vec![Condition::NoneOf {
                argument: 1,
                values: LEASES,
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
                bits: NAMESPACE_BITS | NEW_TIME_BIT,
            }],
        ),
    ];
    calls.extend(MODES.iter().map(|(call, argument)| {
        let (argument, bits) = (*argument, SETID_BITS);
        (*call, vec![Condition::NoBit { argument, bits }])
    }));
    calls.extend(OPENS.iter().map(|(call, flags)| {
        let mode = Condition::NoBitIf {
            flags_argument: *flags,
            flag_bits: CREATE_FLAGS,
            argument: flags + 1,
            bits: SETID_BITS,
        };
        (*call, vec![mode])
    }));
    let allowed = match sockets {
        Sockets::Pairs => &[],
        Sockets::Namespaced => NAMESPACED_FAMILIES,
        Sockets::Supervised | Sockets::Host => NETWORK_FAMILIES,
    };
    let mut socket = vec![families(allowed)];
    let mut pair = vec![families(PAIR_FAMILIES)];
    if sockets != Sockets::Host {
        let connected_unix = Condition::OneOfIf {
            if_argument: 0,
            if_value: libc::AF_UNIX as u32,
            argument: 1,
            mask: TYPE_MASK,
            values: CONNECTED_TYPES,
        };
        socket.push(connected_unix);
        pair.push(connected_unix);
    }
    if sockets == Sockets::Supervised {
        let option = Condition::NoneOf {
            argument: 2,
            values: &[SO_PEERPIDFD],
        };
        calls.push((libc::SYS_getsockopt, vec![option]));
    }
    calls.push((libc::SYS_socket, socket));
    calls.push((libc::SYS_socketpair, pair));
    calls
}

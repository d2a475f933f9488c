//! Compiles the rules to a BPF program for seccomp(2).

use libc::sock_filter;

use super::Sockets;
use super::rules::{self, Condition};

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

/// System calls of the x32 ABI have this bit set. They duplicate the native system calls.
const X32: u32 = 0x4000_0000;

/// Compiles the filter. System calls without a rule are allowed: namespaces decide what a call can
/// reach. The forbidden ones bypass the namespaces or affect the whole host.
pub(in crate::linux) fn filter(sockets: Sockets) -> Vec<sock_filter> {
    let mut filter = vec![
        load(ARCHITECTURE),
        jump(EQUAL, NATIVE, 1, 0),
        ret(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(AT_LEAST, X32, 0, 1),
        ret(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for (call, errno) in rules::forbidden() {
        filter.extend([jump(EQUAL, number(call), 0, 1), ret(errno_result(errno))]);
    }
    for call in rules::supervised(sockets) {
        let notify = ret(libc::SECCOMP_RET_USER_NOTIF);
        filter.extend([jump(EQUAL, number(*call), 0, 1), notify]);
    }
    for (call, conditions) in rules::conditional(sockets) {
        let mut body = Vec::new();
        for condition in conditions {
            body.extend(check(condition));
        }
        body.push(ret(libc::SECCOMP_RET_ALLOW));
        let past = u8::try_from(body.len()).unwrap_or(u8::MAX);
        filter.push(jump(EQUAL, number(call), 0, past));
        filter.extend(body);
    }
    filter.push(ret(libc::SECCOMP_RET_ALLOW));
    filter
}

/// Compiles a condition: rejects the call if it doesn't hold, continues otherwise. Compares only the
/// lower 32 bits of an argument; the kernel ignores the upper half of these arguments too.
fn check(condition: Condition) -> Vec<sock_filter> {
    let reject = ret(errno_result(libc::EPERM));
    match condition {
        Condition::NoBit { argument, bits } => {
            vec![
                load(lower_half(argument)),
                jump(ANY_BIT, bits, 0, 1),
                reject,
            ]
        }
        Condition::NoBitIf {
            flags_argument,
            flag_bits,
            argument,
            bits,
        } => vec![
            load(lower_half(flags_argument)),
            // Skips the next three instructions.
            jump(ANY_BIT, flag_bits, 0, 3),
            load(lower_half(argument)),
            jump(ANY_BIT, bits, 0, 1),
            reject,
        ],
        Condition::NoneOf { argument, values } => {
            let mut body = vec![load(lower_half(argument))];
            for value in values {
                body.extend([jump(EQUAL, *value, 0, 1), reject]);
            }
            body
        }
        Condition::OneOf {
            argument,
            mask,
            values,
        } => one_of(argument, mask, values, reject),
        Condition::OneOfIf {
            if_argument,
            if_value,
            argument,
            mask,
            values,
        } => {
            let body = one_of(argument, mask, values, reject);
            let past = u8::try_from(body.len()).unwrap_or(u8::MAX);
            let start = [
                load(lower_half(if_argument)),
                jump(EQUAL, if_value, 0, past),
            ];
            start.into_iter().chain(body).collect()
        }
    }
}

fn one_of(argument: u32, mask: u32, values: &[u32], reject: sock_filter) -> Vec<sock_filter> {
    let mut body = vec![load(lower_half(argument)), statement(MASK, mask)];
    let mut left = u8::try_from(values.len()).unwrap_or(u8::MAX);
    for value in values {
        // Skips the remaining comparisons and the rejection after them.
        body.push(jump(EQUAL, *value, left, 0));
        left -= 1;
    }
    body.push(reject);
    body
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Returns the offset of an argument's lower half. Both architectures are little-endian.
fn lower_half(argument: u32) -> u32 {
    ARGUMENTS + 8 * argument
}

fn errno_result(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | (errno.cast_unsigned() & libc::SECCOMP_RET_DATA)
}

fn load(offset: u32) -> sock_filter {
    statement(LOAD, offset)
}

fn ret(value: u32) -> sock_filter {
    statement(RETURN, value)
}

fn statement(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter on a system call, like the kernel's interpreter.
    fn run(sockets: Sockets, architecture: u32, number: u32, arguments: &[u64]) -> u32 {
        let mut data = [0_u8; 64];
        data[..4].copy_from_slice(&number.to_le_bytes());
        data[4..8].copy_from_slice(&architecture.to_le_bytes());
        for (index, argument) in arguments.iter().enumerate() {
            data[16 + 8 * index..][..8].copy_from_slice(&argument.to_le_bytes());
        }
        let filter = filter(sockets);
        interpret(&filter, &data)
    }

    fn interpret(filter: &[sock_filter], data: &[u8]) -> u32 {
        let (mut pc, mut accumulator) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = filter[pc];
            pc += 1;
            let jumps = match code {
                LOAD => {
                    let word = &data[k as usize..][..4];
                    accumulator = u32::from_le_bytes(word.try_into().expect("four bytes"));
                    continue;
                }
                MASK => {
                    accumulator &= k;
                    continue;
                }
                RETURN => return k,
                EQUAL => accumulator == k,
                AT_LEAST => accumulator >= k,
                ANY_BIT => accumulator & k != 0,
                other => panic!("unexpected instruction {other:#x}"),
            };
            pc += usize::from(if jumps { jt } else { jf });
        }
    }

    fn call(sockets: Sockets, call: libc::c_long, arguments: &[i64]) -> u32 {
        let arguments: Vec<_> = arguments.iter().map(|one| one.cast_unsigned()).collect();
        run(sockets, NATIVE, number(call), &arguments)
    }

    const REJECTED: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const NOTIFIED: u32 = libc::SECCOMP_RET_USER_NOTIF;
    const ALL: [Sockets; 4] = [
        Sockets::Pairs,
        Sockets::Namespaced,
        Sockets::Supervised,
        Sockets::Host,
    ];

    #[test]
    fn foreign_architecture_kills_the_process() {
        for sockets in ALL {
            let killed = libc::SECCOMP_RET_KILL_PROCESS;
            assert_eq!(run(sockets, 0x4000_0003, 20, &[]), killed);
            assert_eq!(run(sockets, NATIVE, X32 | 39, &[]), killed);
            assert_eq!(call(sockets, libc::SYS_getpid, &[]), ALLOWED);
        }
    }

    #[test]
    fn restricted_network_allows_only_sockets_inside_the_namespace() {
        let socket = |domain: i32, kind: i32| {
            let arguments = [domain.into(), kind.into(), 0];
            call(Sockets::Namespaced, libc::SYS_socket, &arguments)
        };
        let pair = |kind: i32| {
            let arguments = [libc::AF_UNIX.into(), kind.into(), 0];
            call(Sockets::Namespaced, libc::SYS_socketpair, &arguments)
        };
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM), REJECTED);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_DGRAM), REJECTED);
        assert_eq!(socket(libc::AF_VSOCK, libc::SOCK_STREAM), REJECTED);
        assert_eq!(socket(libc::AF_PACKET, libc::SOCK_RAW), REJECTED);
        assert_eq!(socket(libc::AF_ALG, libc::SOCK_SEQPACKET), REJECTED);
        assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM), ALLOWED);
        assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM), ALLOWED);
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        assert_eq!(pair(libc::SOCK_STREAM | flags), ALLOWED);
        assert_eq!(pair(libc::SOCK_SEQPACKET), ALLOWED);
        let other = [libc::AF_TIPC.into(), libc::SOCK_STREAM.into(), 0];
        for sockets in ALL {
            assert_eq!(call(sockets, libc::SYS_socketpair, &other), REJECTED);
        }
        // One end of a datagram pair can send to any address.
        assert_eq!(pair(libc::SOCK_DGRAM | flags), REJECTED);
        assert_eq!(pair(libc::SOCK_RAW), REJECTED);
    }

    #[test]
    fn restricted_network_without_namespaces_allows_no_socket() {
        let filter = filter(Sockets::Pairs);
        for domain in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let mut data = [0_u8; 64];
            data[..4].copy_from_slice(&number(libc::SYS_socket).to_le_bytes());
            data[4..8].copy_from_slice(&NATIVE.to_le_bytes());
            data[16..20].copy_from_slice(&domain.to_le_bytes());
            assert_eq!(interpret(&filter, &data), REJECTED);
        }
    }

    #[test]
    fn supervised_unix_sockets_have_no_datagrams_and_do_not_connect_by_themselves() {
        let socket = |domain: i32, kind: i32| {
            let arguments = [domain.into(), kind.into(), 0];
            call(Sockets::Supervised, libc::SYS_socket, &arguments)
        };
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM | flags), ALLOWED);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_SEQPACKET), ALLOWED);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_DGRAM), REJECTED);
        // The kernel makes a datagram socket of it.
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_RAW), REJECTED);
        assert_eq!(socket(libc::AF_INET, libc::SOCK_DGRAM), ALLOWED);
        assert_eq!(socket(libc::AF_VSOCK, libc::SOCK_STREAM), REJECTED);
        let option = [3, libc::SOL_SOCKET.into(), 77];
        for sockets in ALL {
            let is_supervised = sockets == Sockets::Supervised;
            let notified = if is_supervised { NOTIFIED } else { ALLOWED };
            for number in [libc::SYS_connect, libc::SYS_listen] {
                assert_eq!(call(sockets, number, &[]), notified, "{sockets:?}");
            }
            let expected = if is_supervised { REJECTED } else { ALLOWED };
            assert_eq!(call(sockets, libc::SYS_getsockopt, &option), expected);
        }
    }

    #[test]
    fn leases_are_rejected() {
        for sockets in ALL {
            let fcntl = |request: i32| call(sockets, libc::SYS_fcntl, &[3, request.into()]);
            assert_eq!(fcntl(libc::F_SETLEASE), REJECTED);
            assert_eq!(fcntl(1040), REJECTED);
            assert_eq!(fcntl(libc::F_GETLEASE), ALLOWED);
            assert_eq!(fcntl(libc::F_DUPFD_CLOEXEC), ALLOWED);
        }
    }

    #[test]
    fn enabled_network_allows_host_sockets() {
        let socket = |domain: i32| {
            let arguments = [domain.into(), libc::SOCK_STREAM.into(), 0];
            call(Sockets::Host, libc::SYS_socket, &arguments)
        };
        assert_eq!(socket(libc::AF_UNIX), ALLOWED);
        assert_eq!(socket(libc::AF_INET), ALLOWED);
        assert_eq!(socket(libc::AF_VSOCK), REJECTED);
    }

    #[test]
    fn terminal_input_injection_is_rejected_with_any_upper_half() {
        for sockets in ALL {
            let ioctl = |command: u64| {
                let number = number(libc::SYS_ioctl);
                run(sockets, NATIVE, number, &[0, command, 0])
            };
            assert_eq!(ioctl(libc::TIOCSTI), REJECTED);
            assert_eq!(ioctl(libc::TIOCLINUX), REJECTED);
            assert_eq!(ioctl(0x1_0000_0000 | libc::TIOCSTI), REJECTED);
            assert_eq!(ioctl(libc::TIOCGWINSZ), ALLOWED);
        }
    }

    #[test]
    fn new_namespaces_are_rejected() {
        for sockets in ALL {
            let user = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
            assert_eq!(call(sockets, libc::SYS_clone, &[user]), REJECTED);
            let thread = i64::from(libc::CLONE_VM | libc::CLONE_THREAD);
            assert_eq!(call(sockets, libc::SYS_clone, &[thread]), ALLOWED);
            let mounts = i64::from(libc::CLONE_NEWNS);
            assert_eq!(call(sockets, libc::SYS_unshare, &[mounts]), REJECTED);
            let files = i64::from(libc::CLONE_FILES);
            assert_eq!(call(sockets, libc::SYS_unshare, &[files]), ALLOWED);
            // libc falls back to `clone` on ENOSYS.
            let unsupported = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
            assert_eq!(call(sockets, libc::SYS_clone3, &[]), unsupported);
        }
    }

    #[test]
    fn file_mode_is_checked_only_where_the_kernel_uses_it() {
        for sockets in ALL {
            let open = |flags: i32, mode: i64| {
                let arguments = [libc::AT_FDCWD.into(), 0, flags.into(), mode];
                call(sockets, libc::SYS_openat, &arguments)
            };
            let made = libc::O_CREAT | libc::O_WRONLY;
            assert_eq!(open(made, 0o644), ALLOWED);
            assert_eq!(open(made, 0o4755), REJECTED);
            assert_eq!(open(libc::O_TMPFILE | libc::O_RDWR, 0o2755), REJECTED);
            // Without O_CREAT the mode argument is undefined.
            assert_eq!(open(libc::O_RDONLY | libc::O_DIRECTORY, 0o6755), ALLOWED);
            let chmod = |mode: i64| call(sockets, libc::SYS_fchmod, &[3, mode]);
            assert_eq!(chmod(0o1777), ALLOWED);
            assert_eq!(chmod(0o4000), REJECTED);
            assert_eq!(chmod(0o2775), REJECTED);
            // A set-group-ID directory is allowed.
            let made = call(sockets, libc::SYS_mkdirat, &[-100, 0, 0o2775]);
            assert_eq!(made, ALLOWED);
        }
    }

    #[test]
    fn io_uring_ptrace_and_keyrings_are_rejected() {
        for sockets in ALL {
            for number in [
                libc::SYS_io_uring_setup,
                libc::SYS_ptrace,
                libc::SYS_process_vm_readv,
                libc::SYS_keyctl,
                libc::SYS_mount,
                libc::SYS_bpf,
            ] {
                assert_eq!(call(sockets, number, &[]), REJECTED, "{number}");
            }
            for number in [libc::SYS_openat, libc::SYS_execve, libc::SYS_bind] {
                assert_eq!(call(sockets, number, &[]), ALLOWED, "{number}");
            }
        }
    }
}

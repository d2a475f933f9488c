//! Which system calls a confined process may make, as a program for the kernel's filter.

use libc::sock_filter;

use super::calls::{self, Condition};
use crate::{Level, Network};

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Where things are in what the kernel shows the filter.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

/// Numbers from here on are calls of x32, which are the native ones once more. No other
/// architecture has numbers as high.
const X32: u32 = 0x4000_0000;

/// The filter for a process on this network. What isn't forbidden is allowed: programs make calls
/// that nobody here has heard of, and what a call may touch is decided by the namespaces. What is
/// forbidden leads around those, or has a host of its own behind it.
pub(super) fn filter(network: Network, level: Level) -> Vec<sock_filter> {
    let mut filter = vec![
        load(ARCHITECTURE),
        jump(EQUAL, NATIVE, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(AT_LEAST, X32, 0, 1),
        give(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for (call, errno) in calls::forbidden() {
        filter.extend([jump(EQUAL, number(call), 0, 1), give(refusal(errno))]);
    }
    for (call, conditions) in calls::conditional(network, level) {
        let mut body = Vec::new();
        for condition in conditions {
            body.extend(check(condition));
        }
        body.push(give(libc::SECCOMP_RET_ALLOW));
        let past = u8::try_from(body.len()).unwrap_or(u8::MAX);
        filter.push(jump(EQUAL, number(call), 0, past));
        filter.extend(body);
    }
    filter.push(give(libc::SECCOMP_RET_ALLOW));
    filter
}

/// Refuses where the condition doesn't hold, and goes on where it does. Only the lower half of an
/// argument is looked at, since the kernel looks at no more of these either.
fn check(condition: Condition) -> Vec<sock_filter> {
    let refuse = give(refusal(libc::EPERM));
    match condition {
        Condition::NoBit { argument, bits } => {
            vec![load(lower(argument)), jump(ANY_BIT, bits, 0, 1), refuse]
        }
        Condition::NoBitIf {
            asked,
            any,
            argument,
            bits,
        } => vec![
            load(lower(asked)),
            // Over the three that follow.
            jump(ANY_BIT, any, 0, 3),
            load(lower(argument)),
            jump(ANY_BIT, bits, 0, 1),
            refuse,
        ],
        Condition::NoneOf { argument, values } => {
            let mut body = vec![load(lower(argument))];
            for value in values {
                body.extend([jump(EQUAL, *value, 0, 1), refuse]);
            }
            body
        }
        Condition::OneOf {
            argument,
            mask,
            values,
        } => {
            let mut body = vec![load(lower(argument)), statement(MASK, mask)];
            let mut left = u8::try_from(values.len()).unwrap_or(u8::MAX);
            for value in values {
                // Over the comparisons that are left, and the refusal behind them.
                body.push(jump(EQUAL, *value, left, 0));
                left -= 1;
            }
            body.push(refuse);
            body
        }
    }
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Both architectures put the lower half first.
fn lower(argument: u32) -> u32 {
    ARGUMENTS + 8 * argument
}

fn refusal(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | (errno.cast_unsigned() & libc::SECCOMP_RET_DATA)
}

fn load(offset: u32) -> sock_filter {
    statement(LOAD, offset)
}

fn give(value: u32) -> sock_filter {
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

    /// What the filter answers to a call, by the rules of the kernel's interpreter.
    fn answer(network: Network, architecture: u32, number: u32, arguments: &[u64]) -> u32 {
        let mut data = [0_u8; 64];
        data[..4].copy_from_slice(&number.to_le_bytes());
        data[4..8].copy_from_slice(&architecture.to_le_bytes());
        for (index, argument) in arguments.iter().enumerate() {
            data[16 + 8 * index..][..8].copy_from_slice(&argument.to_le_bytes());
        }
        let filter = filter(network, Level::Namespaces);
        interpret(&filter, &data)
    }

    fn interpret(filter: &[sock_filter], data: &[u8]) -> u32 {
        let (mut at, mut held) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            at += 1;
            let jumps = match code {
                LOAD => {
                    let word = &data[k as usize..][..4];
                    held = u32::from_le_bytes(word.try_into().expect("four bytes"));
                    continue;
                }
                MASK => {
                    held &= k;
                    continue;
                }
                RETURN => return k,
                EQUAL => held == k,
                AT_LEAST => held >= k,
                ANY_BIT => held & k != 0,
                other => panic!("{other:#x} is no instruction of ours"),
            };
            at += usize::from(if jumps { jt } else { jf });
        }
    }

    fn call(network: Network, call: libc::c_long, arguments: &[i64]) -> u32 {
        let arguments: Vec<_> = arguments.iter().map(|one| one.cast_unsigned()).collect();
        answer(network, NATIVE, number(call), &arguments)
    }

    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const BOTH: [Network; 2] = [Network::Restricted, Network::Enabled];

    #[test]
    fn another_architecture_is_deadly() {
        for network in BOTH {
            let dead = libc::SECCOMP_RET_KILL_PROCESS;
            assert_eq!(answer(network, 0x4000_0003, 20, &[]), dead);
            assert_eq!(answer(network, NATIVE, X32 | 39, &[]), dead);
            assert_eq!(call(network, libc::SYS_getpid, &[]), ALLOWED);
        }
    }

    #[test]
    fn without_a_network_there_is_no_socket_but_ones_own() {
        let socket = |domain: i32, kind: i32| {
            let arguments = [domain.into(), kind.into(), 0];
            call(Network::Restricted, libc::SYS_socket, &arguments)
        };
        let pair = |kind: i32| {
            let arguments = [libc::AF_UNIX.into(), kind.into(), 0];
            call(Network::Restricted, libc::SYS_socketpair, &arguments)
        };
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_STREAM), REFUSED);
        assert_eq!(socket(libc::AF_UNIX, libc::SOCK_DGRAM), REFUSED);
        assert_eq!(socket(libc::AF_VSOCK, libc::SOCK_STREAM), REFUSED);
        assert_eq!(socket(libc::AF_PACKET, libc::SOCK_RAW), REFUSED);
        assert_eq!(socket(libc::AF_ALG, libc::SOCK_SEQPACKET), REFUSED);
        assert_eq!(socket(libc::AF_INET, libc::SOCK_STREAM), ALLOWED);
        assert_eq!(socket(libc::AF_INET6, libc::SOCK_DGRAM), ALLOWED);
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        assert_eq!(pair(libc::SOCK_STREAM | flags), ALLOWED);
        assert_eq!(pair(libc::SOCK_SEQPACKET), ALLOWED);
        let other = [libc::AF_TIPC.into(), libc::SOCK_STREAM.into(), 0];
        for network in BOTH {
            assert_eq!(call(network, libc::SYS_socketpair, &other), REFUSED);
        }
        // One end of such a pair can send to any address.
        assert_eq!(pair(libc::SOCK_DGRAM | flags), REFUSED);
        assert_eq!(pair(libc::SOCK_RAW), REFUSED);
    }

    #[test]
    fn without_namespaces_there_is_no_socket_at_all() {
        let filter = filter(Network::Restricted, Level::Landlock);
        for domain in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let mut data = [0_u8; 64];
            data[..4].copy_from_slice(&number(libc::SYS_socket).to_le_bytes());
            data[4..8].copy_from_slice(&NATIVE.to_le_bytes());
            data[16..20].copy_from_slice(&domain.to_le_bytes());
            assert_eq!(interpret(&filter, &data), REFUSED);
        }
    }

    #[test]
    fn with_a_network_sockets_are_the_hosts() {
        let socket = |domain: i32| {
            let arguments = [domain.into(), libc::SOCK_STREAM.into(), 0];
            call(Network::Enabled, libc::SYS_socket, &arguments)
        };
        assert_eq!(socket(libc::AF_UNIX), ALLOWED);
        assert_eq!(socket(libc::AF_INET), ALLOWED);
        assert_eq!(socket(libc::AF_VSOCK), REFUSED);
    }

    #[test]
    fn typing_for_others_is_refused_however_it_is_spelled() {
        for network in BOTH {
            let ioctl = |command: u64| {
                let number = number(libc::SYS_ioctl);
                answer(network, NATIVE, number, &[0, command, 0])
            };
            assert_eq!(ioctl(libc::TIOCSTI), REFUSED);
            assert_eq!(ioctl(libc::TIOCLINUX), REFUSED);
            assert_eq!(ioctl(0x1_0000_0000 | libc::TIOCSTI), REFUSED);
            assert_eq!(ioctl(libc::TIOCGWINSZ), ALLOWED);
        }
    }

    #[test]
    fn there_are_no_namespaces_below() {
        for network in BOTH {
            let user = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
            assert_eq!(call(network, libc::SYS_clone, &[user]), REFUSED);
            let thread = i64::from(libc::CLONE_VM | libc::CLONE_THREAD);
            assert_eq!(call(network, libc::SYS_clone, &[thread]), ALLOWED);
            let mounts = i64::from(libc::CLONE_NEWNS);
            assert_eq!(call(network, libc::SYS_unshare, &[mounts]), REFUSED);
            let files = i64::from(libc::CLONE_FILES);
            assert_eq!(call(network, libc::SYS_unshare, &[files]), ALLOWED);
            // A library that hears this falls back to the call that can be looked into.
            let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
            assert_eq!(call(network, libc::SYS_clone3, &[]), absent);
        }
    }

    #[test]
    fn a_mode_is_looked_at_where_the_kernel_looks() {
        for network in BOTH {
            let open = |flags: i32, mode: i64| {
                let arguments = [libc::AT_FDCWD.into(), 0, flags.into(), mode];
                call(network, libc::SYS_openat, &arguments)
            };
            let made = libc::O_CREAT | libc::O_WRONLY;
            assert_eq!(open(made, 0o644), ALLOWED);
            assert_eq!(open(made, 0o4755), REFUSED);
            assert_eq!(open(libc::O_TMPFILE | libc::O_RDWR, 0o2755), REFUSED);
            // There is no mode then, and what is in its place may be anything.
            assert_eq!(open(libc::O_RDONLY | libc::O_DIRECTORY, 0o6755), ALLOWED);
            let chmod = |mode: i64| call(network, libc::SYS_fchmod, &[3, mode]);
            assert_eq!(chmod(0o1777), ALLOWED);
            assert_eq!(chmod(0o4000), REFUSED);
            assert_eq!(chmod(0o2775), REFUSED);
            // A directory that passes on its group can be made.
            let made = call(network, libc::SYS_mkdirat, &[-100, 0, 0o2775]);
            assert_eq!(made, ALLOWED);
        }
    }

    #[test]
    fn rings_strangers_and_keys_are_refused() {
        for network in BOTH {
            for number in [
                libc::SYS_io_uring_setup,
                libc::SYS_ptrace,
                libc::SYS_process_vm_readv,
                libc::SYS_keyctl,
                libc::SYS_mount,
                libc::SYS_bpf,
            ] {
                assert_eq!(call(network, number, &[]), REFUSED, "{number}");
            }
            for number in [libc::SYS_openat, libc::SYS_execve, libc::SYS_connect] {
                assert_eq!(call(network, number, &[]), ALLOWED, "{number}");
            }
        }
    }
}

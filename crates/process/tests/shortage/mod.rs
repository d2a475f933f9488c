//! Simulates a kernel that runs out of a resource, on demand.
//!
//! A seccomp filter with user notification (`seccomp_unotify(2)`) reports certain system calls of a
//! thread and its children to this program, which lets them fail or continue. The code is in this crate
//! because `unsafe` is allowed here, and is compiled into the tests that need it.

#![expect(unsafe_code, reason = "installs a seccomp filter")]

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

/// A system call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Accepts a connection.
    Accept,
    /// Registers a descriptor with epoll.
    Watch,
    /// Creates a directory.
    MakeDirectory,
    /// Creates a process or a thread.
    Fork,
    /// Reads a file beyond its first 4 MiB.
    ReadFarther,
}

impl Call {
    const ALL: [Call; 5] = [
        Call::Accept,
        Call::Watch,
        Call::MakeDirectory,
        Call::Fork,
        Call::ReadFarther,
    ];

    fn numbers(self) -> &'static [libc::c_long] {
        match self {
            Call::Accept => &[libc::SYS_accept4],
            Call::Watch => &[libc::SYS_epoll_ctl],
            Call::MakeDirectory => &[libc::SYS_mkdirat],
            Call::Fork => &[libc::SYS_clone3, libc::SYS_clone],
            Call::ReadFarther => &[libc::SYS_pread64],
        }
    }

    /// Whether a notification is about this call. For `epoll_ctl` only `EPOLL_CTL_ADD` allocates memory.
    fn is(self, data: &libc::seccomp_data) -> bool {
        let is_meant = match self {
            Call::Watch => data.args[1] as i32 == libc::EPOLL_CTL_ADD,
            Call::ReadFarther => data.args[3] >= 4 << 20,
            _ => true,
        };
        self.numbers().contains(&data.nr.into()) && is_meant
    }
}

/// The call that fails, shared with the responder thread.
#[derive(Debug, Default)]
struct Failing {
    call: Option<(Call, Failure)>,
    /// How many calls succeed first.
    skip: usize,
    failed: usize,
    /// Calls that do not return, by the id of their notification.
    hanging: Vec<u64>,
}

/// The effect on a call.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Errno(i32),
    /// It does not return before [`Shortage::end`].
    Hangs,
}

/// Controls the simulated failures. Servers must have ended before it is dropped.
pub(crate) struct Shortage {
    listener: Arc<OwnedFd>,
    failing: Arc<Mutex<Failing>>,
    /// Closed to end the responder thread.
    running: Option<PipeWriter>,
    responder: Option<JoinHandle<()>>,
}

impl Shortage {
    /// Installs the filter for this thread and its children. No call fails at first.
    pub(crate) fn install() -> Self {
        let failing = Arc::new(Mutex::default());
        let (ended, running) = io::pipe().expect("create a pipe");
        let (install, installed) = mpsc::sync_channel::<Arc<OwnedFd>>(1);
        let shared = Arc::clone(&failing);
        // Started before the filter, so it is not filtered itself.
        let responder = thread::spawn(move || {
            if let Ok(listener_fd) = installed.recv() {
                respond_all(&listener_fd, &ended, &shared);
            }
        });
        let listener = Arc::new(listener());
        let sent = install.send(Arc::clone(&listener));
        sent.expect("the responder runs");
        Shortage {
            listener,
            failing,
            running: Some(running),
            responder: Some(responder),
        }
    }

    /// Makes a call fail, except in the test program itself.
    pub(crate) fn begin(&self, call: Call, errno: i32) {
        self.begin_after(0, call, errno);
    }

    /// Makes a call fail after `skip` calls have succeeded.
    pub(crate) fn begin_after(&self, skip: usize, call: Call, errno: i32) {
        *lock(&self.failing) = Failing {
            call: Some((call, Failure::Errno(errno))),
            skip,
            ..Failing::default()
        };
    }

    /// Makes a call not return, as on a file system that does not answer.
    pub(crate) fn hang(&self, call: Call) {
        *lock(&self.failing) = Failing {
            call: Some((call, Failure::Hangs)),
            ..Failing::default()
        };
    }

    /// Lets all calls succeed again.
    pub(crate) fn end(&self) {
        let mut failing = lock(&self.failing);
        failing.call = None;
        for id in std::mem::take(&mut failing.hanging) {
            send(&self.listener, &continued(id));
        }
    }

    /// How often the call has failed since [`Shortage::begin`].
    pub(crate) fn failed_calls(&self) -> usize {
        lock(&self.failing).failed
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(responder) = self.responder.take() {
            let _ = responder.join();
        }
    }
}

fn lock(failing: &Mutex<Failing>) -> MutexGuard<'_, Failing> {
    failing.lock().unwrap_or_else(PoisonError::into_inner)
}

fn respond_all(listener_fd: &OwnedFd, ended: &PipeReader, failing: &Mutex<Failing>) {
    loop {
        let mut ready = [
            PollFd::new(listener_fd, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        let waited = poll(&mut ready, None);
        let [notified, has_ended] = ready.map(|fd| fd.revents());
        if waited.is_err() {
            continue;
        }
        if !has_ended.is_empty() || notified.contains(PollFlags::HUP) {
            return;
        }
        if let Some(notification) = receive(listener_fd)
            && let Some(response) = respond(&notification, failing)
        {
            send(listener_fd, &response);
        }
    }
}

/// Lets a call continue.
fn continued(id: u64) -> libc::seccomp_notif_resp {
    libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    }
}

/// Returns the response, or `None` for a call that hangs.
fn respond(
    notification: &libc::seccomp_notif,
    failing: &Mutex<Failing>,
) -> Option<libc::seccomp_notif_resp> {
    let mut response = continued(notification.id);
    let mut failing = lock(failing);
    if let Some((call, failure)) = failing.call
        && call.is(&notification.data)
        && !is_own(notification.pid)
    {
        if let Some(left) = failing.skip.checked_sub(1) {
            failing.skip = left;
        } else {
            failing.failed += 1;
            let Failure::Errno(errno) = failure else {
                failing.hanging.push(notification.id);
                return None;
            };
            response.error = -errno;
            response.flags = 0;
        }
    }
    Some(response)
}

/// Whether a thread belongs to this program.
fn is_own(thread: u32) -> bool {
    fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(false)
}

/// Receives the next notification, unless its thread is gone.
fn receive(listener_fd: &OwnedFd) -> Option<libc::seccomp_notif> {
    // SAFETY: it consists of integers, and the kernel requires zeroes.
    let mut notification: libc::seccomp_notif = unsafe { mem::zeroed() };
    let fd = listener_fd.as_fd().as_raw_fd();
    // SAFETY: the request writes one notification to valid memory.
    let received = unsafe {
        libc::ioctl(
            fd,
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            &raw mut notification,
        )
    };
    (received == 0).then_some(notification)
}

/// Sends a response. The thread may be gone by now.
fn send(listener_fd: &OwnedFd, response: &libc::seccomp_notif_resp) {
    let fd = listener_fd.as_fd().as_raw_fd();
    // SAFETY: the request reads a valid response.
    let _ = unsafe {
        libc::ioctl(
            fd,
            libc::SECCOMP_IOCTL_NOTIF_SEND as _,
            &raw const *response,
        )
    };
}

/// Installs the filter for this thread. Returns the descriptor for notifications.
fn listener() -> OwnedFd {
    let instruction = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    // The system call number is the first field of `seccomp_data`.
    let mut filter = vec![instruction(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        0,
        0,
    )];
    let numbers = Call::ALL.iter().flat_map(|call| call.numbers());
    for number in numbers {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.extend([
            instruction(equal, 1, *number as u32),
            instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF),
        ]);
    }
    let allow = instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW);
    filter.push(allow);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: sets a flag of this thread.
    let allowed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(allowed, 0, "set no_new_privs");
    // SAFETY: the program is complete and outlives the call, which copies it.
    let listener_fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    assert!(
        listener_fd >= 0,
        "no filter: {}",
        io::Error::last_os_error()
    );
    // SAFETY: the descriptor is new.
    unsafe { OwnedFd::from_raw_fd(listener_fd as i32) }
}

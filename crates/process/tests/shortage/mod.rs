//! A kernel that is out of something when a test says so, and has it again when it says so.
//!
//! That can't be arranged for real. A filter asks this program about certain calls of a thread and
//! of everything it starts, and this program answers in the kernel's place: with an error, or that
//! the kernel may go on. It lives in this crate, like all code that is `unsafe`, and is compiled
//! into the tests that need it.

#![expect(unsafe_code, reason = "no crate we have installs a filter")]

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

/// A call that can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Takes a connection from a listener.
    Accept,
    /// Makes a descriptor one that is waited for.
    Watch,
    /// Makes a directory in another one.
    MakeDirectory,
    /// Makes a process or a thread.
    Fork,
}

impl Call {
    const ALL: [Call; 4] = [Call::Accept, Call::Watch, Call::MakeDirectory, Call::Fork];

    fn numbers(self) -> &'static [libc::c_long] {
        match self {
            Call::Accept => &[libc::SYS_accept4],
            Call::Watch => &[libc::SYS_epoll_ctl],
            Call::MakeDirectory => &[libc::SYS_mkdirat],
            Call::Fork => &[libc::SYS_clone3, libc::SYS_clone],
        }
    }

    /// Whether it is this one. Of what can be said about a descriptor that is waited for, only the
    /// first word takes memory.
    fn is(self, data: &libc::seccomp_data) -> bool {
        let first = data.args[1] as i32 == libc::EPOLL_CTL_ADD;
        self.numbers().contains(&data.nr.into()) && (self != Call::Watch || first)
    }
}

/// What is refused, and how often it was. Shared with the thread that answers.
#[derive(Debug, Default)]
struct Lack {
    of: Option<(Call, i32)>,
    /// For so many more there is enough.
    enough_for: usize,
    refused: usize,
}

/// The kernel's answers, until it is dropped. Servers have to be gone by then.
pub(crate) struct Shortage {
    lack: Arc<Mutex<Lack>>,
    /// Closed to end the thread that answers.
    running: Option<PipeWriter>,
    answering: Option<JoinHandle<()>>,
}

impl Shortage {
    /// Asks about the calls of this thread and of what it starts from now on; there is enough of
    /// everything at first.
    pub(crate) fn to_come() -> Self {
        let lack = Arc::new(Mutex::default());
        let (ended, running) = io::pipe().expect("a pipe can be had");
        let (install, installed) = mpsc::sync_channel(1);
        let shared = Arc::clone(&lack);
        // It is there before the filter, and so isn't asked about itself.
        let answering = thread::spawn(move || {
            if let Ok(asked) = installed.recv() {
                answer_all(&asked, &ended, &shared);
            }
        });
        install.send(listener()).expect("somebody answers");
        Shortage {
            lack,
            running: Some(running),
            answering: Some(answering),
        }
    }

    /// From now on this call fails like that, unless it is a call of the test itself.
    pub(crate) fn begin(&self, call: Call, errno: i32) {
        self.begin_after(0, call, errno);
    }

    /// The same, but so many of them succeed before.
    pub(crate) fn begin_after(&self, enough_for: usize, call: Call, errno: i32) {
        *lock(&self.lack) = Lack {
            of: Some((call, errno)),
            enough_for,
            refused: 0,
        };
    }

    /// From now on there is enough again.
    pub(crate) fn end(&self) {
        lock(&self.lack).of = None;
    }

    /// How often the call has failed since the shortage began.
    pub(crate) fn refused(&self) -> usize {
        lock(&self.lack).refused
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(answering) = self.answering.take() {
            let _ = answering.join();
        }
    }
}

fn lock(lack: &Mutex<Lack>) -> MutexGuard<'_, Lack> {
    lack.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer_all(asked: &OwnedFd, ended: &PipeReader, lack: &Mutex<Lack>) {
    loop {
        let mut ready = [
            PollFd::new(asked, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        let waited = poll(&mut ready, None);
        let [asked_now, ended_now] = ready.map(|fd| fd.revents());
        if waited.is_err() {
            continue;
        }
        if !ended_now.is_empty() || asked_now.contains(PollFlags::HUP) {
            return;
        }
        if let Some(question) = receive(asked) {
            send(asked, &answer(&question, lack));
        }
    }
}

fn answer(question: &libc::seccomp_notif, lack: &Mutex<Lack>) -> libc::seccomp_notif_resp {
    let mut answer = libc::seccomp_notif_resp {
        id: question.id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    let mut lack = lock(lack);
    if let Some((call, errno)) = lack.of
        && call.is(&question.data)
        && !is_own(question.pid)
    {
        if let Some(left) = lack.enough_for.checked_sub(1) {
            lack.enough_for = left;
        } else {
            lack.refused += 1;
            answer.error = -errno;
            answer.flags = 0;
        }
    }
    answer
}

/// Whether a thread is one of this program.
fn is_own(thread: u32) -> bool {
    fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(false)
}

/// The next question, unless whoever had it is gone.
fn receive(asked: &OwnedFd) -> Option<libc::seccomp_notif> {
    // SAFETY: it consists of numbers, and the kernel wants all of them to be 0.
    let mut question: libc::seccomp_notif = unsafe { mem::zeroed() };
    let fd = asked.as_fd().as_raw_fd();
    // SAFETY: the request writes a question to where there is room for one.
    let received =
        unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut question) };
    (received == 0).then_some(question)
}

/// Whoever asked may be gone by now, which is fine.
fn send(asked: &OwnedFd, answer: &libc::seccomp_notif_resp) {
    let fd = asked.as_fd().as_raw_fd();
    // SAFETY: the request reads an answer, which is there.
    let _ = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw const *answer) };
}

/// Installs the filter for this thread; gives back where its questions arrive.
fn listener() -> OwnedFd {
    let instruction = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    // The number of the call is the first thing a filter is shown.
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
    assert_eq!(allowed, 0, "a thread may give up privileges");
    // SAFETY: the program is complete and lives until the call is back, which copies it.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    assert!(asked >= 0, "no filter: {}", io::Error::last_os_error());
    // SAFETY: the descriptor is new and nobody else's.
    unsafe { OwnedFd::from_raw_fd(asked as i32) }
}

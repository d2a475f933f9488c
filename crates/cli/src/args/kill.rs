//! `outpost kill`.

use std::ffi::OsString;

use outpost_client::Signal;

use super::{On, signal::signal};

/// Arguments of `outpost kill`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost kill k3                         terminates it, kills it after 5s
  outpost kill -INT k3 p7                 only sends the signal")]
pub(crate) struct Kill {
    /// Only send this signal: a name such as INT or SIGUSR1, or a number; -INT and -9 work too
    #[arg(short, long, value_name = "SIGNAL", value_parser = signal)]
    pub(crate) signal: Option<Signal>,

    #[command(flatten)]
    pub(crate) on: On,

    /// The process ids, or prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Rewrites `kill -9` and `kill -KILL` to `kill --signal`, as people are used to from kill(1).
pub(super) fn like_kill(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.collect();
    if args.get(1).is_none_or(|command| command != "kill") {
        return args;
    }
    for arg in args.iter_mut().skip(2).take_while(|arg| *arg != "--") {
        let name = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
        let is_signal = |name: &&str| {
            let number = name.chars().all(|c| c.is_ascii_digit());
            let word = name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            !name.is_empty() && (number || (word && name.len() > 1))
        };
        if let Some(name) = name.filter(is_signal) {
            *arg = format!("--signal={name}").into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let args = like_kill(line.split(' ').map(OsString::from));
        let args: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
        args.join(" ")
    }

    #[test]
    fn signal_may_be_written_as_for_kill() {
        assert_eq!(read("outpost kill -9 k3"), "outpost kill --signal=9 k3");
        assert_eq!(
            read("outpost kill k3 -KILL"),
            "outpost kill k3 --signal=KILL"
        );
        assert_eq!(read("outpost kill -USR1 k"), "outpost kill --signal=USR1 k");
        for same in [
            "outpost kill -s 9 k3",
            "outpost kill --on unix:///x -h",
            "outpost kill -- -9",
            "outpost run -9 kill",
        ] {
            assert_eq!(read(same), same);
        }
    }
}

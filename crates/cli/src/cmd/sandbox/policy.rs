//! What a command is confined to, from what was typed.

use std::path::{Path, PathBuf};

use anyhow::bail;
use outpost_client as client;
use outpost_engine::sandbox::{
    Network,
    policy::{BuiltIn, FileSystem, Policy, Profiles},
};

use crate::args::Sandbox;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Wish {
    /// The profile it began with.
    pub(super) profile: String,
    pub(super) cwd: PathBuf,
    /// None for full access.
    pub(super) sandbox: Option<client::Sandbox>,
}

/// The profile with what was said besides it.
pub(super) fn wish(args: &Sandbox, profiles: &Profiles, cwd: PathBuf) -> anyhow::Result<Wish> {
    let profile = args.profile.as_ref().unwrap_or(&profiles.default).clone();
    let sandbox = match named(profiles, &profile, &cwd)? {
        // Whoever denies something wants to be confined that far.
        None if !args.deny.is_empty() => Some(everything(&cwd)),
        sandbox => sandbox,
    };
    let sandbox = sandbox.map(|sandbox| with_more(sandbox, args, &cwd));
    Ok(Wish {
        profile,
        cwd,
        sandbox,
    })
}

/// What the profile of this name confines to; none for full access.
pub(crate) fn named(
    profiles: &Profiles,
    name: &str,
    cwd: &Path,
) -> anyhow::Result<Option<client::Sandbox>> {
    match profiles.policy(name, cwd) {
        Ok(policy) => Ok(policy.map(Into::into)),
        Err(unknown) => bail!("{unknown}; there are {}", names(profiles)),
    }
}

fn names(profiles: &Profiles) -> String {
    let mut names: Vec<&str> = BuiltIn::ALL.map(BuiltIn::name).to_vec();
    names.extend(profiles.configured.keys().map(String::as_str));
    names.join(", ")
}

fn everything(cwd: &Path) -> client::Sandbox {
    let policy = Policy {
        file_system: FileSystem::Unrestricted,
        network: Network::Enabled,
        cwd: cwd.to_owned(),
        workspace_roots: vec![cwd.to_owned()],
    };
    policy.into()
}

fn with_more(mut sandbox: client::Sandbox, args: &Sandbox, cwd: &Path) -> client::Sandbox {
    for path in &args.read {
        sandbox = sandbox.read(cwd.join(path));
    }
    for path in &args.write {
        sandbox = sandbox.write(cwd.join(path));
    }
    for place in &args.deny {
        sandbox = match place.contains(['*', '?']) {
            true => sandbox.deny_matching(pattern(place)),
            false => sandbox.deny(cwd.join(place)),
        };
    }
    match args.net {
        true => sandbox.network(),
        false => sandbox,
    }
}

/// What was typed as a pattern of the engine. Names with brackets and braces are
/// common, and one that were taken for a set would silently not be denied, so all
/// but `*` and `?` stands for itself.
fn pattern(typed: &str) -> String {
    let mut pattern = String::new();
    for letter in typed.chars() {
        if matches!(letter, '[' | ']' | '{' | '}' | ',' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use outpost_engine::sandbox::{
        Access,
        policy::{Entry, Place, Special},
    };

    use super::*;
    use crate::args::{Arguments, Subcommand};

    fn typed(words: &str) -> Wish {
        let line = format!("outpost sandbox {words} -- true");
        let Subcommand::Sandbox(args) = Arguments::parse_from(line.split_whitespace()).subcommand
        else {
            panic!("that is another command");
        };
        wish(&args, &Profiles::default(), "/srv".into()).unwrap()
    }

    fn entries(wish: &Wish) -> Vec<Entry> {
        match &wish.sandbox.as_ref().unwrap().policy().file_system {
            FileSystem::Restricted(files) => files.entries.clone(),
            FileSystem::Unrestricted => Vec::new(),
        }
    }

    #[test]
    fn a_profile_is_where_it_begins() {
        assert_eq!(typed("").profile, ":workspace");
        let read_only = typed("--profile :read-only");
        let all = Entry::new(Place::Special(Special::Root), Access::Read);
        assert_eq!(entries(&read_only), [all]);
        assert!(typed("-p :danger-full-access").sandbox.is_none());
    }

    #[test]
    fn what_is_typed_is_seen_from_here() {
        let wish = typed("-p :read-only --write out --write /var/x --deny secret --deny **/*.pem");
        let said: Vec<_> = entries(&wish)[1..]
            .iter()
            .map(|entry| format!("{} {}", entry.access.word(), entry.place))
            .collect();
        assert_eq!(
            said,
            [
                "write /srv/out",
                "write /var/x",
                "deny /srv/secret",
                "deny **/*.pem"
            ]
        );
    }

    #[test]
    fn only_stars_and_question_marks_make_a_pattern() {
        for (place, denied) in [
            ("x[1]", "deny /srv/x[1]"),
            ("{a,b}", "deny /srv/{a,b}"),
            ("a\\b", "deny /srv/a\\b"),
            ("x[1]/*.pem", "deny x\\[1\\]/*.pem"),
            ("{a,b}\\?", "deny \\{a\\,b\\}\\\\?"),
        ] {
            let wish = typed(&format!("--deny {place}"));
            let entries = entries(&wish);
            let last = entries.last().unwrap();
            assert_eq!(format!("{} {}", last.access.word(), last.place), denied);
        }
    }

    #[test]
    fn the_network_is_granted_by_name() {
        let network = |words| typed(words).sandbox.unwrap().policy().network;
        assert_eq!(network(""), Network::Restricted);
        assert_eq!(network("--net"), Network::Enabled);
    }

    #[test]
    fn to_deny_something_is_to_confine() {
        let wish = typed("-p :danger-full-access --deny /etc/shadow");
        let everything = Entry::new(Place::Special(Special::Root), Access::Write);
        assert_eq!(entries(&wish)[0], everything);
        assert_eq!(entries(&wish).len(), 2);
    }
}

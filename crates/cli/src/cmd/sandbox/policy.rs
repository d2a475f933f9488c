//! The sandbox of a command, from its arguments.

use std::path::{Path, PathBuf};

use anyhow::bail;
use outpost_client as client;
use outpost_engine::{
    netproxy::{NetworkPolicies, RuleSet},
    sandbox::{
        Network,
        policy::{BuiltIn, FileSystem, Policy, Profiles},
    },
};

use super::Sandbox;

/// The requested sandbox.
#[derive(Debug)]
pub(super) struct SandboxRequest {
    /// Name of the profile.
    pub(super) profile: String,
    pub(super) cwd: PathBuf,
    /// None for full access.
    pub(super) sandbox: Option<client::Sandbox>,
    /// The rules of the network, instead of the network of the sandbox.
    pub(super) network: Option<RuleSet>,
}

/// Combines the profile with the flags.
pub(super) fn request(
    args: &Sandbox,
    profiles: &Profiles,
    policies: &NetworkPolicies,
    cwd: PathBuf,
) -> anyhow::Result<SandboxRequest> {
    let profile = args.profile.as_ref().unwrap_or(&profiles.default).clone();
    let network = match args.net {
        true => None,
        false => {
            let of_profile = profiles.network_policy(&profile);
            args.network.rules(policies, of_profile)?
        }
    };
    let sandbox = match profile_sandbox(profiles, &profile, &cwd)? {
        // `--deny` and network policies confine even with full access.
        None if !args.deny.is_empty() || network.is_some() => {
            let full_access = Policy {
                file_system: FileSystem::Unrestricted,
                network: Network::Enabled,
                cwd: cwd.clone(),
                workspace_roots: vec![cwd.clone()],
            };
            Some(full_access.into())
        }
        sandbox => sandbox,
    };
    let sandbox = sandbox.map(|sandbox| with_flags(sandbox, args, &cwd));
    Ok(SandboxRequest {
        profile,
        cwd,
        sandbox,
        network,
    })
}

/// The sandbox of a profile; none for full access.
pub(crate) fn profile_sandbox(
    profiles: &Profiles,
    name: &str,
    cwd: &Path,
) -> anyhow::Result<Option<client::Sandbox>> {
    match profiles.policy(name, cwd) {
        Ok(policy) => Ok(policy.map(Into::into)),
        Err(unknown) => {
            let mut names: Vec<&str> = BuiltIn::ALL.map(BuiltIn::name).to_vec();
            names.extend(profiles.configured.keys().map(String::as_str));
            bail!("{unknown}; there are {}", names.join(", "))
        }
    }
}

fn with_flags(mut sandbox: client::Sandbox, args: &Sandbox, cwd: &Path) -> client::Sandbox {
    for path in &args.read {
        sandbox = sandbox.read(cwd.join(path));
    }
    for path in &args.write {
        sandbox = sandbox.write(cwd.join(path));
    }
    for place in &args.deny {
        sandbox = if place.contains(['*', '?']) {
            sandbox.deny_matching(pattern(place))
        } else {
            sandbox.deny(cwd.join(place))
        };
    }
    if args.net { sandbox.network() } else { sandbox }
}

/// Converts an argument to a pattern of the engine. Brackets and braces are common in file names,
/// and taken as a set they would silently deny nothing. So only `*` and `?` are special.
fn pattern(argument: &str) -> String {
    let mut pattern = String::new();
    for letter in argument.chars() {
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
        policy::{Entry, SpecialPath},
    };

    use super::*;
    use crate::args::{Arguments, Subcommand};

    fn parse(args: &str) -> SandboxRequest {
        let line = format!("outpost sandbox {args} -- true");
        let Subcommand::Sandbox(args) = Arguments::parse_from(line.split_whitespace()).subcommand
        else {
            panic!("that is another command");
        };
        let policies = NetworkPolicies::default();
        request(&args, &Profiles::default(), &policies, "/srv".into()).unwrap()
    }

    fn entries(request: &SandboxRequest) -> Vec<Entry> {
        match &request.sandbox.as_ref().unwrap().policy().file_system {
            FileSystem::Restricted(files) => files.entries.clone(),
            FileSystem::Unrestricted => Vec::new(),
        }
    }

    #[test]
    fn profile_is_the_starting_point() {
        assert_eq!(parse("").profile, ":workspace");
        let read_only = parse("--profile :read-only");
        let all = Entry::special(SpecialPath::Root, Access::Read);
        assert_eq!(entries(&read_only), [all]);
        assert!(parse("-p :danger-full-access").sandbox.is_none());
    }

    #[test]
    fn flags_resolve_against_the_working_directory() {
        let request =
            parse("-p :read-only --write out --write /var/x --deny secret --deny **/*.pem");
        let shown: Vec<_> = entries(&request)[1..]
            .iter()
            .map(|entry| format!("{} {}", entry.access.as_str(), entry.path))
            .collect();
        assert_eq!(
            shown,
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
            let request = parse(&format!("--deny {place}"));
            let entries = entries(&request);
            let last = entries.last().unwrap();
            assert_eq!(format!("{} {}", last.access.as_str(), last.path), denied);
        }
    }

    #[test]
    fn network_needs_flag() {
        let network = |args| parse(args).sandbox.unwrap().policy().network;
        assert_eq!(network(""), Network::Restricted);
        assert_eq!(network("--net"), Network::Enabled);
    }

    #[test]
    fn network_policy_confines_full_access() {
        let request = parse("-p :danger-full-access --allow-host a.test:443 --deny-host b.a.test");
        assert!(request.sandbox.is_some());
        let rules = request.network.unwrap();
        assert_eq!((rules.allow.len(), rules.deny.len()), (1, 1));
        assert_eq!(parse("").network, None);
    }

    #[test]
    fn deny_confines_full_access() {
        let request = parse("-p :danger-full-access --deny /etc/shadow");
        let everything = Entry::special(SpecialPath::Root, Access::Write);
        assert_eq!(entries(&request)[0], everything);
        assert_eq!(entries(&request).len(), 2);
    }
}

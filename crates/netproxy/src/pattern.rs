//! Rules: patterns of hosts, with ports.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::Host;

/// Hosts and ports that a policy allows or denies.
///
/// | pattern | matches |
/// |---|---|
/// | `example.com`, `192.0.2.1`, `[2001:db8::1]` | this host |
/// | `*.example.com` | its subdomains, at any depth |
/// | `**.example.com` | itself and its subdomains |
/// | `*` | everything |
/// | `192.0.2.0/24`, `2001:db8::/32` | addresses of this network; not names that resolve to one |
///
/// Elsewhere in a name, `*` stands for any characters and `?` for one. `:443` or `:8000-8999` after the
/// pattern restricts the ports. Case and a final dot do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: Pattern,
    ports: RangeInclusive<u16>,
}

/// The hosts that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    Address(IpAddr),
    Network {
        address: IpAddr,
        length: u8,
    },
    Name {
        /// Whether a host matches that `name` matches.
        apex: bool,
        /// Whether a host matches that ends with a dot and a match of `name`.
        subdomains: bool,
        /// In lower case, with wildcards.
        name: String,
    },
}

/// A text that is no rule. The texts are part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is no host.
    #[error("domain pattern is empty")]
    Empty,
    /// The pattern has characters that no host has.
    #[error("unsupported domain pattern syntax: {0}")]
    Syntax(String),
    /// `**` stands elsewhere than before the first dot.
    #[error("unsupported repeated wildcard: {0}")]
    RepeatedWildcard(String),
    /// The ports are no number or range.
    #[error("invalid port in the rule: {0}")]
    Port(String),
    /// The network has host bits or an invalid length.
    #[error("invalid network in the rule: {0}")]
    Network(String),
}

/// The longest part of a pattern in an error message, in characters.
const MAX_ECHOED: usize = 300;

const ANY_PORT: RangeInclusive<u16> = 0..=u16::MAX;

impl Rule {
    /// Reads a pattern of `domains` in `networkProxy`: a host or a name with wildcards. A port is dropped.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse_domain(text: &str) -> Result<Self, PatternError> {
        let (host, port) = split_port(text);
        let has_port = port.is_some_and(|port| port.bytes().all(|c| c.is_ascii_digit()));
        Ok(Self {
            pattern: Pattern::parse(if has_port { host } else { text }, text)?,
            ports: ANY_PORT,
        })
    }

    /// Returns whether it matches every host and port.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.pattern == Pattern::Any && self.ports == ANY_PORT
    }

    /// Returns whether it matches a host as requested, and a port.
    #[must_use]
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.ports.contains(&port)
            && match (&self.pattern, host) {
                (Pattern::Any, _) => true,
                (Pattern::Address(expected), Host::Address(address)) => expected == address,
                (Pattern::Network { .. }, Host::Address(address)) => self.contains(*address),
                (Pattern::Name { .. }, _) => self.matches_text(&host.to_string()),
                (Pattern::Address(_) | Pattern::Network { .. }, Host::Name(_)) => false,
            }
    }

    /// Returns whether it names an address, or its network, and matches a port. To be used for an address
    /// that a name has.
    pub(crate) fn matches_address(&self, address: IpAddr, port: u16) -> bool {
        let names_addresses = matches!(self.pattern, Pattern::Address(_) | Pattern::Network { .. });
        names_addresses && self.matches(&Host::from(address), port)
    }

    /// Returns whether it names exactly this host or its network, rather than matching it by a wildcard.
    pub(crate) fn names(&self, host: &Host, port: u16) -> bool {
        let is_exact = match &self.pattern {
            Pattern::Any => false,
            Pattern::Address(_) | Pattern::Network { .. } => true,
            Pattern::Name {
                apex,
                subdomains,
                name,
            } => *apex && !subdomains && !name.contains(['*', '?']),
        };
        is_exact && self.matches(host, port)
    }

    fn contains(&self, address: IpAddr) -> bool {
        let Pattern::Network {
            address: network,
            length,
        } = self.pattern
        else {
            return false;
        };
        match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let host_bits = 32 - u32::from(length);
                shifted(network.to_bits().into(), host_bits)
                    == shifted(address.to_bits().into(), host_bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let host_bits = 128 - u32::from(length);
                shifted(network.to_bits(), host_bits) == shifted(address.to_bits(), host_bits)
            }
            _ => false,
        }
    }

    fn matches_text(&self, host: &str) -> bool {
        let Pattern::Name {
            apex,
            subdomains,
            name,
        } = &self.pattern
        else {
            return false;
        };
        let mut parents = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        (*apex && glob(name, host)) || (*subdomains && parents.any(|parent| glob(name, parent)))
    }
}

impl FromStr for Rule {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.contains("://") {
            return Err(PatternError::Syntax(echoed(text)));
        }
        let (host, port) = split_port(text);
        let ports = match port {
            None => ANY_PORT,
            Some(port) => {
                let (from, to) = port.split_once('-').unwrap_or((port, port));
                let range = from.parse().ok().zip(to.parse().ok());
                let range = range.filter(|(from, to)| from <= to);
                let (from, to) = range.ok_or_else(|| PatternError::Port(echoed(text)))?;
                from..=to
            }
        };
        let pattern = match host.split_once('/') {
            Some((address, length)) => Pattern::parse_network(address, length)
                .ok_or_else(|| PatternError::Network(echoed(text)))?,
            None => Pattern::parse(host, text)?,
        };
        Ok(Self { pattern, ports })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        match &self.pattern {
            Pattern::Any => f.write_str("*")?,
            Pattern::Address(address) => f.write_str(&bracketed(address))?,
            Pattern::Network { address, length } => write!(f, "{}/{length}", bracketed(address))?,
            Pattern::Name {
                apex,
                subdomains,
                name,
            } => {
                let prefix = match (apex, subdomains) {
                    (true, true) => "**.",
                    (false, _) => "*.",
                    (true, false) => "",
                };
                write!(f, "{prefix}{name}")?;
            }
        }
        match (self.ports.start(), self.ports.end()) {
            (0, &u16::MAX) => Ok(()),
            (from, to) if from == to => write!(f, ":{from}"),
            (from, to) => write!(f, ":{from}-{to}"),
        }
    }
}

impl Pattern {
    /// Parses a host with wildcards. `whole` is named in errors.
    fn parse(text: &str, whole: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Pattern::Any);
        }
        if let Ok(host @ Host::Address(_)) = Host::parse(text) {
            return Ok(Pattern::of(host));
        }
        let lower = text.to_ascii_lowercase();
        let (apex, subdomains, name) = match (lower.strip_prefix("**."), lower.strip_prefix("*.")) {
            (Some(name), _) => (true, true, name),
            (None, Some(name)) => (false, true, name),
            (None, None) => (true, false, &*lower),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() {
            return Err(PatternError::Empty);
        }
        if name.contains("**") {
            return Err(PatternError::RepeatedWildcard(echoed(whole)));
        }
        let plain: String = name.chars().map(without_wildcard).collect();
        match Host::parse(&plain) {
            Ok(_) => Ok(Pattern::Name {
                apex,
                subdomains,
                name: name.to_owned(),
            }),
            Err(_) => Err(PatternError::Syntax(echoed(whole))),
        }
    }

    fn of(host: Host) -> Self {
        match host {
            Host::Address(address) => Pattern::Address(address),
            Host::Name(name) => Pattern::Name {
                apex: true,
                subdomains: false,
                name,
            },
        }
    }

    /// Parses a network. Host bits must be zero: a mistake would allow another network than was meant.
    fn parse_network(address: &str, length: &str) -> Option<Self> {
        let address = address
            .strip_prefix('[')
            .and_then(|address| address.strip_suffix(']'))
            .unwrap_or(address);
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let host_bits = u32::checked_sub(width, u32::from(length))?;
        let network = shifted(bits, host_bits);
        let is_network = network.checked_shl(host_bits).unwrap_or(0) == bits;
        is_network.then_some(Pattern::Network { address, length })
    }
}

/// Returns the host and the text after its last colon. An IPv6 address without brackets has no port.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with([']']) || is_network(host) => {
            (host, Some(port))
        }
        _ => (text, None),
    }
}

/// Returns whether this is an IPv6 network, whose address needs no brackets.
fn is_network(text: &str) -> bool {
    text.contains('/')
}

fn without_wildcard(character: char) -> char {
    match character {
        '*' | '?' => 'x',
        other => other,
    }
}

/// Shifts right, also by the whole width.
fn shifted(bits: u128, by: u32) -> u128 {
    bits.checked_shr(by).unwrap_or(0)
}

fn echoed(text: &str) -> String {
    text.chars().take(MAX_ECHOED).collect()
}

/// Matches `*` with any characters and `?` with one. Takes time proportional to the product of the lengths.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut position) = (0, 0);
    // The last `*`, and the position in the text that it extends to.
    let mut star = None;
    while position < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(expected) if *expected == b'?' || *expected == text[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((star_at, extent)) = star else {
                    return false;
                };
                star = Some((star_at, extent + 1));
                at = star_at + 1;
                position = extent + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn domain(pattern: &str, host: &str) -> bool {
        let rule = Rule::parse_domain(pattern).expect("a pattern");
        rule.matches(&Host::parse(host).expect("a host"), 443)
    }

    fn rule(text: &str) -> Rule {
        text.parse().expect("a rule")
    }

    fn matches(text: &str, host: &str, port: u16) -> bool {
        rule(text).matches(&Host::parse(host).expect("a host"), port)
    }

    #[test]
    fn domain_patterns_match_like_those_of_released_servers() {
        let hosts = ["allowed.test", "sub.allowed.test", "deep.sub.allowed.test"];
        for (pattern, expected) in [
            ("allowed.test", [true, false, false]),
            ("ALLOWED.TEST.", [true, false, false]),
            ("allowed.test:80", [true, false, false]),
            ("allowed.tes?", [true, false, false]),
            ("*.allowed.test", [false, true, true]),
            ("**.allowed.test", [true, true, true]),
            ("*allowed.test", [true, true, true]),
            ("sub.*.test", [false, true, false]),
            ("*", [true, true, true]),
            ("other.test", [false, false, false]),
            ("**.sub.allowed.test", [false, true, true]),
        ] {
            assert_eq!(
                hosts.map(|host| domain(pattern, host)),
                expected,
                "{pattern}"
            );
        }
        assert!(!domain("**.allowed.test", "notallowed.test"));
        assert!(!domain("*.allowed.test", "allowed.test.evil.test"));
        assert!(domain("[::1]:80", "::1"));
        assert!(domain("::1", "[::1]"));
        assert!(domain("10.0.0.1:80", "10.0.0.1"));
    }

    #[test]
    fn invalid_domain_patterns_have_the_messages_of_released_servers() {
        for (pattern, message) in [
            ("", "domain pattern is empty"),
            ("*.", "domain pattern is empty"),
            ("**.", "domain pattern is empty"),
            (".", "domain pattern is empty"),
            ("a b", "unsupported domain pattern syntax: a b"),
            ("http://x", "unsupported domain pattern syntax: http://x"),
            (
                "10.0.0.0/8",
                "unsupported domain pattern syntax: 10.0.0.0/8",
            ),
            ("a:b", "unsupported domain pattern syntax: a:b"),
            (
                "ex\u{e4}mple.test",
                "unsupported domain pattern syntax: ex\u{e4}mple.test",
            ),
            ("**", "unsupported repeated wildcard: **"),
            ("a.**.test", "unsupported repeated wildcard: a.**.test"),
            ("***.test", "unsupported repeated wildcard: ***.test"),
        ] {
            let error = Rule::parse_domain(pattern).expect_err(pattern);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn rules_restrict_ports() {
        assert!(matches("a.test", "a.test", 1));
        assert!(matches("a.test:443", "a.test", 443));
        assert!(!matches("a.test:443", "a.test", 80));
        for port in [8000, 8500, 8999] {
            assert!(matches("*.a.test:8000-8999", "b.a.test", port));
        }
        for port in [7999, 9000] {
            assert!(!matches("*.a.test:8000-8999", "b.a.test", port));
        }
        assert!(matches("*:22", "b.test", 22) && !matches("*:22", "b.test", 23));
        for text in [
            "a.test:",
            "a.test:x",
            "a.test:2-1",
            "a.test:65536",
            "a.test:1-",
        ] {
            assert_eq!(
                text.parse::<Rule>(),
                Err(PatternError::Port(text.to_owned()))
            );
        }
    }

    #[test]
    fn networks_match_addresses_only() {
        assert!(matches("10.0.0.0/8", "10.1.2.3", 1));
        assert!(matches("10.0.0.0/8:22", "10.1.2.3", 22));
        assert!(!matches("10.0.0.0/8:22", "10.1.2.3", 23));
        assert!(!matches("10.0.0.0/8", "11.0.0.0", 1));
        assert!(matches("0.0.0.0/0", "11.0.0.0", 1) && !matches("0.0.0.0/0", "::1", 1));
        assert!(matches("fd00::/8", "fd12::1", 1) && !matches("fd00::/8", "fe80::1", 1));
        assert!(matches("[fd00::]/8:22", "fd12::1", 22));
        assert!(matches("fd00::/8:22", "fd12::1", 22) && !matches("fd00::/8:22", "fd12::1", 23));
        assert!(matches("10.0.0.1/32", "::ffff:10.0.0.1", 1));
        assert!(!matches("10.0.0.0/8", "ten.test", 1));
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "fd00::/129",
            "a.test/8",
            "10.0.0.0/x",
        ] {
            let error = text.parse::<Rule>();
            assert_eq!(error, Err(PatternError::Network(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn only_exact_rules_name_a_host() {
        let localhost = Host::parse("localhost").expect("a host");
        let names = |text: &str, host: &Host| rule(text).names(host, 80);
        assert!(names("localhost", &localhost) && names("localhost:80", &localhost));
        for text in [
            "*",
            "*.localhost",
            "**.localhost",
            "localhos?",
            "localhost:81",
        ] {
            assert!(!names(text, &localhost), "{text}");
        }
        let address = Host::parse("10.0.0.1").expect("a host");
        assert!(names("10.0.0.1", &address) && names("10.0.0.0/8", &address));
        assert!(!names("10.0.0.*", &address) && !names("*", &address));
    }

    fn pattern_strategy() -> impl Strategy<Value = String> {
        "(\\*\\.|\\*\\*\\.)?[a-c?*]{1,3}(\\.[a-c?]{1,2}){0,2}(:[0-9]{1,4}(-[0-9]{1,4})?)?"
    }

    proptest! {
        #[test]
        fn display_of_a_rule_is_parsed_as_the_same_rule(text in pattern_strategy()) {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }

        /// Compares with a recursive definition of wildcards.
        #[test]
        fn wildcards_match_like_their_definition(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            fn defined(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern.split_first(), text.split_first()) {
                    (None, _) => text.is_empty(),
                    (Some((b'*', rest)), None) => defined(rest, text),
                    (Some((b'*', rest)), Some((_, after))) => {
                        defined(rest, text) || defined(pattern, after)
                    }
                    (Some((b'?', rest)), Some((_, after))) => defined(rest, after),
                    (Some((byte, rest)), Some((first, after))) => {
                        byte == first && defined(rest, after)
                    }
                    (Some(_), None) => false,
                }
            }
            prop_assert_eq!(glob(&pattern, &text), defined(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn subdomain_patterns_never_match_a_host_outside(host in "[a-z]{1,5}(\\.[a-z]{1,5}){0,3}") {
            let parsed = Host::parse(&host).expect("a host");
            let is_below = host.ends_with(".d.test");
            prop_assert_eq!(rule("*.d.test").matches(&parsed, 1), is_below);
            prop_assert_eq!(rule("**.d.test").matches(&parsed, 1), is_below || host == "d.test");
        }
    }
}

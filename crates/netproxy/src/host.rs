//! The host of a request, in one spelling.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::address;

/// The longest name, without a final dot.
const MAX_NAME: usize = 253;
/// The longest part of a name between two dots.
const MAX_LABEL: usize = 63;

/// A host that a program asks for: a name in lower case without a final dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name. It may be a number in a form that only some resolvers read as an address.
    Name(String),
    /// An address. Never an IPv4-mapped IPv6 address.
    Address(IpAddr),
}

/// A text that is neither a name nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid host")]
pub struct InvalidHost;

impl Host {
    /// Reads a host as it is written in a URL or a SOCKS request.
    ///
    /// # Errors
    /// If the text has characters that no name in ASCII has, or is too long. A name in another alphabet has
    /// to be written in punycode.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if let Some(bracketed) = text.strip_prefix('[') {
            let address = bracketed.strip_suffix(']').ok_or(InvalidHost)?;
            let address: Ipv6Addr = address.parse().map_err(|_| InvalidHost)?;
            return Ok(Host::from(IpAddr::V6(address)));
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::from(address));
        }
        let is_label = |label: &str| {
            let mut characters = label.bytes();
            (1..=MAX_LABEL).contains(&label.len())
                && characters.all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
        };
        if text.len() <= MAX_NAME && text.split('.').all(is_label) {
            Ok(Host::Name(text.to_ascii_lowercase()))
        } else {
            Err(InvalidHost)
        }
    }

    /// Returns whether this host can be known to be local without resolving a name.
    pub(crate) fn is_local_literal(&self) -> bool {
        match self {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => !address::is_public(*address),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Host::Address(address::canonical(address))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Result<Host, InvalidHost> {
        Ok(Host::Name(text.to_owned()))
    }

    #[test]
    fn spellings_of_one_host_are_equal() {
        assert_eq!(Host::parse("Example.COM."), name("example.com"));
        let loopback = Host::parse("127.0.0.1");
        for text in ["127.0.0.1.", "[::ffff:127.0.0.1]", "::ffff:7f00:1"] {
            assert_eq!(Host::parse(text), loopback, "{text}");
        }
        assert_eq!(Host::parse("[::1]"), Host::parse("0:0::1"));
    }

    #[test]
    fn numbers_that_are_no_canonical_address_stay_names() {
        for text in ["2130706433", "0177.0.0.1", "0x7f.1", "127.1"] {
            assert_eq!(Host::parse(text), name(text));
        }
    }

    #[test]
    fn other_texts_are_invalid() {
        let long = ["a"; 128].join(".");
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "a.b..",
            "a b",
            "a/b",
            "a@b",
            "a%2eb",
            "ex\u{e4}mple",
            "a:b",
            "[::1",
            "[127.0.0.1]",
            "fe80::1%lo",
            "[fe80::1%25lo]",
            "a\0b",
            "a\r\nb",
            "*",
            &long,
        ] {
            assert_eq!(Host::parse(text), Err(InvalidHost), "{text}");
        }
        assert!(Host::parse(&["a"; 127].join(".")).is_ok());
        assert!(Host::parse(&"a".repeat(63)).is_ok());
        assert!(Host::parse(&"a".repeat(64)).is_err());
    }

    proptest! {
        #[test]
        fn display_of_a_host_is_parsed_as_the_same_host(text in "[a-zA-Z0-9.:\\[\\]_-]{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host.clone()));
                prop_assert_eq!(host.to_string().to_ascii_lowercase(), host.to_string());
            }
        }
    }
}

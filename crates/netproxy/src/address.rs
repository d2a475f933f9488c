//! Public and non-public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the address that packets to `address` go to: an IPv4-mapped IPv6 address is its IPv4 address.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Returns whether an address belongs to the public Internet. All others reach this host, its networks, or
/// nothing.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Non-public IPv4 networks, see the IANA registry of special-purpose addresses: address and prefix length.
const NON_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    // This network.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by providers.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, which includes the metadata services of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocol assignments.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, and reserved with the broadcast address.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(network, length): &(Ipv4Addr, u32)| {
        let host_bits = 32 - length;
        bits >> host_bits == network.to_bits() >> host_bits
    };
    !NON_PUBLIC_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let bits = u32::from(high) << 16 | u32::from(low);
        is_public_v4(Ipv4Addr::from_bits(bits))
    };
    match segments {
        // NAT64 reaches the IPv4 address at its end.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4 reaches the IPv4 address after its prefix.
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo and other protocol assignments; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast. Everything else is loopback, local, multicast or unassigned.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().expect("an address"))
    }

    #[test]
    fn special_networks_are_not_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.255.255",
            "100.64.1.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(text), "{text}");
        }
    }

    #[test]
    fn addresses_next_to_special_networks_are_public() {
        for text in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700::1",
            "2a00:1450::1",
        ] {
            assert!(public(text), "{text}");
        }
    }
}

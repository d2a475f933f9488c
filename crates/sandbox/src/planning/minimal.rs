//! Paths that a dynamic program needs to run.

use crate::Network;

/// Programs, libraries, files of the dynamic loader, certificates and time zones of common
/// distributions. Devices are not included: every sandbox has a `/dev` of its own.
const ALWAYS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/run/current-system/sw",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
];

/// Configuration of name resolution.
const WITH_A_NETWORK: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// Returns the readable paths. A host need not have all of them.
pub(super) fn paths(network: Network) -> impl Iterator<Item = &'static str> {
    let network_paths = match network {
        Network::Restricted => &[][..],
        Network::Enabled => WITH_A_NETWORK,
    };
    ALWAYS.iter().chain(network_paths).copied()
}

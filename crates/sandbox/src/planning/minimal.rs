//! What a dynamic program needs to run.

use crate::Network;

/// Programs and libraries, wherever a distribution has them, the loader's own files, certificates
/// and time zones. Devices are not among them: every confined process gets a `/dev` of its own.
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

/// How names of other hosts are looked up.
const WITH_A_NETWORK: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// The paths to read. Those that a host lacks are nobody's loss.
pub(super) fn paths(network: Network) -> impl Iterator<Item = &'static str> {
    let more = match network {
        Network::Restricted => &[][..],
        Network::Enabled => WITH_A_NETWORK,
    };
    ALWAYS.iter().chain(more).copied()
}

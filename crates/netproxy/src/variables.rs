//! The environment variables that point programs to a proxy.

use std::net::SocketAddr;

/// The addresses of a proxy, as the process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyAddress {
    /// The address of the HTTP proxy.
    pub http: SocketAddr,
    /// The address of the SOCKS5 proxy.
    pub socks: Option<SocketAddr>,
}

/// Variables with the URL of the HTTP proxy.
const HTTP: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "WS_PROXY",
    "WSS_PROXY",
    "ws_proxy",
    "wss_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "npm_config_http_proxy",
    "npm_config_https_proxy",
    "npm_config_proxy",
    "NPM_CONFIG_HTTP_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_PROXY",
    "BUNDLE_HTTP_PROXY",
    "BUNDLE_HTTPS_PROXY",
    "PIP_PROXY",
    "DOCKER_HTTP_PROXY",
    "DOCKER_HTTPS_PROXY",
];

/// Variables with the URL of the SOCKS5 proxy, or of the HTTP proxy if there is none.
const SOCKS: &[&str] = &["ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"];

/// Variables with the hosts that are reached without a proxy.
const EXCEPTIONS: &[&str] = &[
    "NO_PROXY",
    "no_proxy",
    "npm_config_noproxy",
    "NPM_CONFIG_NOPROXY",
    "BUNDLE_NO_PROXY",
];

/// The hosts that are reached without a proxy if local addresses are allowed.
const LOCAL: &str = "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";

/// Returns the variables for a process with this proxy. They replace those that it would have otherwise.
#[must_use]
pub fn variables(proxy: ProxyAddress, allow_local: bool) -> Vec<(&'static str, String)> {
    let http = format!("http://{}", proxy.http);
    // With `h`, the proxy resolves names.
    let socks = proxy.socks.map(|socks| format!("socks5h://{socks}"));
    let socks = socks.unwrap_or_else(|| http.clone());
    let exceptions = if allow_local { LOCAL } else { "" };
    let allow_local = if allow_local { "1" } else { "0" };
    let all = |names: &'static [&'static str], value: &str| {
        let value = value.to_owned();
        names.iter().map(move |name| (*name, value.clone()))
    };
    all(HTTP, &http)
        .chain(all(SOCKS, &socks))
        .chain(all(EXCEPTIONS, exceptions))
        .chain([
            ("CODEX_NETWORK_PROXY_ACTIVE", "1".to_owned()),
            ("CODEX_NETWORK_ALLOW_LOCAL_BINDING", allow_local.to_owned()),
            ("ELECTRON_GET_USE_PROXY", "true".to_owned()),
            ("NODE_USE_ENV_PROXY", "1".to_owned()),
        ])
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(proxy: ProxyAddress, allow_local: bool) -> BTreeMap<&'static str, String> {
        variables(proxy, allow_local).into_iter().collect()
    }

    #[test]
    fn variables_name_the_proxies() {
        let http = "127.0.0.1:1".parse().expect("an address");
        let socks = "127.0.0.1:2".parse().expect("an address");
        let both = map(
            ProxyAddress {
                http,
                socks: Some(socks),
            },
            false,
        );
        assert_eq!(both.len(), 34);
        assert_eq!(both["HTTPS_PROXY"], "http://127.0.0.1:1");
        assert_eq!(both["npm_config_proxy"], "http://127.0.0.1:1");
        assert_eq!(both["ALL_PROXY"], "socks5h://127.0.0.1:2");
        assert_eq!(both["NO_PROXY"], "");
        assert_eq!(both["CODEX_NETWORK_ALLOW_LOCAL_BINDING"], "0");
        let only = map(ProxyAddress { http, socks: None }, true);
        assert_eq!(only["ftp_proxy"], "http://127.0.0.1:1");
        assert!(only["BUNDLE_NO_PROXY"].starts_with("localhost,127.0.0.1,::1,10.0.0.0/8"));
        assert_eq!(only["CODEX_NETWORK_ALLOW_LOCAL_BINDING"], "1");
    }
}

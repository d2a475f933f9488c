//! Names, addresses and ports through the proxy, in a network with public addresses.

use serde_json::json;

use super::{Internet, decisions, managed, output, proxy, wait_decision};

#[tokio::test]
async fn only_allowed_names_are_reached() {
    let internet = Internet::new().await;
    let client = &internet.client;
    let domains = json!({
        "**.allowed.test": "allow", "private.test": "allow", "loopback.test": "allow",
        "metadata.test": "allow", "mixed.test": "allow", "missing.test": "allow", "denied.test": "deny",
        "*.test": "none",
    });
    let get = |url: &str| format!("curl -sS -m 10 -o /dev/null -w '%{{http_code}}\n' {url}\n");
    let urls = [
        (
            "http://allowed.test/",
            "200",
            "allow baseline_policy allow http allowed.test 80",
        ),
        (
            "http://sub.allowed.test:8080/",
            "200",
            "allow baseline_policy allow http sub.allowed.test 8080",
        ),
        (
            "http://ALLOWED.test./",
            "200",
            "allow baseline_policy allow http allowed.test 80",
        ),
        (
            "http://other.test/",
            "403",
            "deny baseline_policy not_allowed http other.test 80",
        ),
        (
            "http://denied.test/",
            "403",
            "deny baseline_policy denied http denied.test 80",
        ),
        (
            "http://private.test/",
            "403",
            "deny baseline_policy not_allowed_local http private.test 80",
        ),
        (
            "http://loopback.test/",
            "403",
            "deny baseline_policy not_allowed_local http loopback.test 80",
        ),
        (
            "http://metadata.test/",
            "403",
            "deny baseline_policy not_allowed_local http metadata.test 80",
        ),
        (
            "http://mixed.test/",
            "403",
            "deny baseline_policy not_allowed_local http mixed.test 80",
        ),
        (
            "http://missing.test/",
            "403",
            "deny baseline_policy not_allowed_local http missing.test 80",
        ),
        (
            "http://93.184.216.34/",
            "403",
            "deny baseline_policy not_allowed http 93.184.216.34 80",
        ),
    ];
    let script: String = urls.iter().map(|(url, ..)| get(url)).collect();
    let start = managed("p", &script, proxy(domains, json!({})));
    let text = output(client, start).await;
    let codes: Vec<_> = text.lines().collect();
    assert_eq!(codes, urls.map(|(_, code, _)| code));
    for (_, _, decision) in urls {
        wait_decision(client, "p", decision).await;
    }
    assert_eq!(decisions(client, "p").len(), urls.len());
}

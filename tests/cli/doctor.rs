//! Tests `outpost doctor` without a server.

use serde_json::Value;

use super::{outcome, sandbox::without_bubblewrap, text};

#[tokio::test]
async fn doctor_reports_state_and_remedies() {
    let output = outcome(&["doctor"], b"").await;
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.ends_with("\nSandboxing works on this host.\n"),
        "{printed}"
    );
    for check in [
        "bubblewrap",
        "namespaces",
        "seccomp",
        "landlock",
        "cgroups",
        "network",
    ] {
        assert!(
            printed.contains(&format!("\n{check}")),
            "{check} in {printed}"
        );
    }
    let output = without_bubblewrap(&["doctor"]).await;
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("bubblewrap  missing"), "{printed}");
    assert!(
        printed.contains("bubblewrap: install the package bubblewrap"),
        "{printed}"
    );
    let output = without_bubblewrap(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(text(&output.stdout)).expect("JSON");
    assert_eq!(report["works"], false);
    assert_eq!(report["checks"][0]["state"], "missing");
    assert_eq!(report["checks"][1]["state"], "unknown");
}

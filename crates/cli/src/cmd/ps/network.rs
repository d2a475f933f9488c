//! `outpost ps --net`: lists the decisions about the network of a process.

use std::process::ExitCode;

use anyhow::Context;
use outpost_client::{NetworkActivity, NetworkRecord, NetworkVerdict};

use crate::{
    detached::{self, IfAttached},
    endpoint::Endpoint,
    render::{
        out,
        screen::{Cell, Screen, Style},
    },
    units::byte_size,
};

/// Prints the decisions about the process `id`, as a table or as JSON.
pub(super) async fn show(on: Option<&Endpoint>, id: &str, json: bool) -> anyhow::Result<ExitCode> {
    let opened = detached::open(on, id, IfAttached::Wait).await?;
    let name = opened.found.name();
    let activity = opened.process().network().await;
    let activity = activity.with_context(|| format!("cannot show the network of {name}"))?;
    if json {
        out::json(&activity)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !activity.decisions.is_empty() {
        out::raw_lines(table(&activity.decisions, Screen::stdout()))?;
    }
    for note in notes(&name, &activity) {
        out::note(&note);
    }
    Ok(ExitCode::SUCCESS)
}

fn table(records: &[NetworkRecord], screen: Screen) -> Vec<String> {
    let head = [
        "TIME", "DECISION", "HOST", "PORT", "PROTOCOL", "SENT", "RECEIVED", "REASON",
    ];
    let rows: Vec<_> = records.iter().map(row).collect();
    screen.table(head, &rows)
}

fn row(record: &NetworkRecord) -> [Cell; 8] {
    let decision = &record.decision;
    let (verdict, style) = match decision.decision {
        NetworkVerdict::Allow => ("allow", Style::Good),
        NetworkVerdict::Deny => ("deny", Style::Bad),
        NetworkVerdict::Ask => ("ask", Style::Bad),
    };
    let is_allowed = decision.decision == NetworkVerdict::Allow;
    let bytes = |bytes| {
        Cell::plain(
            is_allowed
                .then(|| byte_size(bytes))
                .as_deref()
                .unwrap_or("-"),
        )
    };
    [
        Cell::plain(&decision.timestamp),
        Cell::styled(verdict, style),
        Cell::plain(&decision.host),
        Cell::plain(decision.port.to_string()),
        Cell::plain(decision.protocol.to_string()),
        bytes(record.sent_bytes),
        bytes(record.received_bytes),
        Cell::plain(&decision.reason),
    ]
}

/// Facts that the table does not show.
fn notes(name: &str, activity: &NetworkActivity) -> Vec<String> {
    let NetworkActivity {
        decision_count: count,
        dropped_decisions: dropped,
        lost_decisions: lost,
        bytes,
        ..
    } = *activity;
    let mut notes = Vec::new();
    if count == 0 {
        let bytes = byte_size(bytes);
        notes.push(format!("no decisions about {name} yet, and {bytes} in all"));
    }
    if dropped > 0 {
        let bytes = byte_size(bytes);
        notes.push(format!(
            "{dropped} of {count} decisions are no longer kept; {bytes} in all"
        ));
    }
    if lost > 0 {
        notes.push(format!(
            "{lost} of {count} decisions were not reported or audited: there were too many at once"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn activity(count: u64, dropped: u64, lost: u64) -> NetworkActivity {
        let record = |decision: &str, host: &str, reason: &str| {
            json!({
                "timestamp": "2026-08-22T05:54:00.123Z", "scope": "domain", "decision": decision,
                "source": "baseline_policy", "reason": reason, "protocol": "https_connect",
                "host": host, "port": 443, "policyOverride": false,
                "sentBytes": 1024, "receivedBytes": 1,
            })
        };
        let records = [
            record("allow", "a.test", "allow"),
            record("deny", "other.test", "not\u{1b}[2J_allowed"),
        ];
        serde_json::from_value(json!({
            "decisions": records, "decisionCount": count, "droppedDecisions": dropped,
            "lostDecisions": lost, "bytes": 2048,
        }))
        .expect("an activity")
    }

    #[test]
    fn table_shows_targets_and_traffic() {
        let table = table(&activity(2, 0, 0).decisions, Screen::FILE);
        insta::assert_snapshot!(table.join("\n"), @r"
        TIME                      DECISION  HOST        PORT  PROTOCOL       SENT     RECEIVED  REASON
        2026-08-22T05:54:00.123Z  allow     a.test      443   https_connect  1.0 KiB  1 byte    allow
        2026-08-22T05:54:00.123Z  deny      other.test  443   https_connect  -        -         not\u{1b}[2J_allowed
        ");
    }

    #[test]
    fn missing_decisions_are_noted() {
        let noted = |count, dropped, lost| notes("p1", &activity(count, dropped, lost)).join("\n");
        assert_eq!(noted(2, 0, 0), "");
        insta::assert_snapshot!(noted(0, 0, 0), @"no decisions about p1 yet, and 2.0 KiB in all");
        insta::assert_snapshot!(noted(300, 44, 3), @r"
        44 of 300 decisions are no longer kept; 2.0 KiB in all
        3 of 300 decisions were not reported or audited: there were too many at once
        ");
    }
}

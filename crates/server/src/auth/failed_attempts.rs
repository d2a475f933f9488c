//! Slows down addresses whose authentication fails, and bounds their lines in the audit log. Pure.

use std::{collections::HashMap, mem, net::IpAddr, time::Duration};

use tokio::time::Instant;

use crate::Peer;

/// The maximum number of addresses in memory. The address with the oldest failure is removed first.
const MAX_ADDRESSES: usize = 4096;

/// The number of failures of an address that are answered without a delay.
const FREE_FAILURES: u32 = 3;

/// The delay of the first slow answer. Each further one takes twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(3);

/// The number of refusals of an address that have a line each. After them, the lines are those of the refusals
/// whose number is a power of two.
const SINGLE_LINES: u64 = 8;

/// Time without a failure after which an address is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// Failed attempts by address.
#[derive(Debug, Default)]
pub(super) struct FailedAttempts {
    by_address: HashMap<Peer, Failures>,
    /// All failures of this server.
    total: u64,
}

/// The failed attempts of one address.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// Refusals of any kind.
    refusals: u64,
    /// Refusals since the last line.
    unrecorded: u64,
    last: Instant,
}

impl FailedAttempts {
    /// Counts a failure. Returns how long its answer has to wait.
    pub(super) fn record(&mut self, address: IpAddr, now: Instant) -> Duration {
        self.total += 1;
        let failures = self.of_address(Peer::from_address(address), now);
        failures.count = failures.count.saturating_add(1);
        let Some(doublings) = failures.count.checked_sub(FREE_FAILURES + 1) else {
            return Duration::ZERO;
        };
        FIRST_DELAY
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(MAX_DELAY)
    }

    /// Counts a refusal that belongs into the audit log. Returns the number of refusals that a line has to stand
    /// for, if there is to be one now. Those since the last line are in the next one, unless the address is
    /// forgotten before.
    pub(super) fn record_refusal(&mut self, address: Peer, now: Instant) -> Option<u64> {
        let failures = self.of_address(address, now);
        failures.refusals = failures.refusals.saturating_add(1);
        failures.unrecorded = failures.unrecorded.saturating_add(1);
        let has_line = failures.refusals <= SINGLE_LINES || failures.refusals.is_power_of_two();
        has_line.then(|| mem::take(&mut failures.unrecorded))
    }

    /// Returns the failures of an address, which are none after some time.
    fn of_address(&mut self, address: Peer, now: Instant) -> &mut Failures {
        if self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&address) {
            self.forget_oldest(now);
        }
        let failures = self.by_address.entry(address).or_insert(Failures {
            count: 0,
            refusals: 0,
            unrecorded: 0,
            last: now,
        });
        if now.duration_since(failures.last) >= FORGET_AFTER {
            failures.count = 0;
            failures.refusals = 0;
        }
        failures.last = now;
        failures
    }

    /// The number of failures since the server was started.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    fn forget_oldest(&mut self, now: Instant) {
        self.by_address
            .retain(|_, failures| now.duration_since(failures.last) < FORGET_AFTER);
        let oldest = self
            .by_address
            .iter()
            .min_by_key(|(_, failures)| failures.last);
        if let Some((&oldest, _)) = oldest
            && self.by_address.len() >= MAX_ADDRESSES
        {
            self.by_address.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn delay_grows_with_failures_and_ends_with_time() {
        let mut attempts = FailedAttempts::default();
        let now = Instant::now();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let delays: Vec<_> = (0..11)
            .map(|_| attempts.record(address, now).as_millis())
            .collect();
        assert_eq!(
            delays,
            [0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000, 3000]
        );
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(attempts.record(other, now), Duration::ZERO);
        assert_eq!(attempts.record(address, now + FORGET_AFTER), Duration::ZERO);
        assert_eq!(attempts.total(), 13);
    }

    #[test]
    fn lines_of_an_address_are_few_and_stand_for_all_its_refusals() {
        let mut attempts = FailedAttempts::default();
        let now = Instant::now();
        let lines: Vec<_> = (0..1000)
            .filter_map(|_| attempts.record_refusal(Peer::Owner, now))
            .collect();
        assert_eq!(lines, [1, 1, 1, 1, 1, 1, 1, 1, 8, 16, 32, 64, 128, 256]);
        let later = attempts.record_refusal(Peer::Owner, now + FORGET_AFTER);
        assert_eq!(later, Some(1000 - 512 + 1));
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(attempts.record(address, now), Duration::ZERO);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let mut attempts = FailedAttempts::default();
        let now = Instant::now();
        let delays = (0..5u16).map(|host| {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, host, 0, 0, host);
            attempts.record(IpAddr::V6(address), now)
        });
        assert!(delays.last().unwrap() > Duration::ZERO);
    }

    #[test]
    fn table_is_bounded() {
        let mut attempts = FailedAttempts::default();
        let start = Instant::now();
        for number in 0..(MAX_ADDRESSES as u32 + 100) {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            attempts.record(address, start + Duration::from_micros(u64::from(number)));
        }
        assert_eq!(attempts.by_address.len(), MAX_ADDRESSES);
    }
}

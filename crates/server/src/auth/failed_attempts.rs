//! Slows down addresses whose authentication fails. Pure.

use std::{collections::HashMap, net::IpAddr, time::Duration};

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
    last: Instant,
}

impl FailedAttempts {
    /// Counts a failure. Returns how long its answer has to wait.
    pub(super) fn record(&mut self, address: IpAddr, now: Instant) -> Duration {
        self.total += 1;
        let address = Peer::from_address(address);
        if self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&address) {
            self.forget_oldest(now);
        }
        let failures = self.by_address.entry(address).or_insert(Failures {
            count: 0,
            last: now,
        });
        if now.duration_since(failures.last) >= FORGET_AFTER {
            failures.count = 0;
        }
        failures.last = now;
        failures.count = failures.count.saturating_add(1);
        let Some(doublings) = failures.count.checked_sub(FREE_FAILURES + 1) else {
            return Duration::ZERO;
        };
        FIRST_DELAY
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(MAX_DELAY)
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

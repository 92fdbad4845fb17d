//! Memory shares of senders. A sender is an IP address, whatever number of connections it opens.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Weak},
};

use kubewake_runtime::lock::Mutex;

use crate::{core::SenderShare, net::listener::sender_network};

/// The table holds this many addresses before those without a connection are removed.
const MIN_KEPT_ADDRESSES: usize = 64;

/// The shares of all addresses with a connection.
#[derive(Default)]
pub(super) struct SenderShares(Mutex<HashMap<IpAddr, Weak<SenderShare>>>);

impl SenderShares {
    /// The share of an address. It exists while somebody holds it.
    pub(super) fn for_address(&self, address: IpAddr) -> Arc<SenderShare> {
        let mut shares = self.0.lock();
        let address = sender_network(address);
        if let Some(share) = shares.get(&address).and_then(Weak::upgrade) {
            return share;
        }
        // Only when the table is full, so that the removal costs each new entry the same on average.
        if shares.len() >= MIN_KEPT_ADDRESSES && shares.len() == shares.capacity() {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(SenderShare::default());
        shares.insert(address, Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_address_share_and_addresses_without_one_are_forgotten() {
        let shares = SenderShares::default();
        let share = |text: &str| shares.for_address(text.parse().unwrap());
        let v4 = share("10.0.0.1");
        let v6 = share("fd00::1");
        assert!(Arc::ptr_eq(&v4, &share("10.0.0.1")));
        assert!(Arc::ptr_eq(&v4, &share("::ffff:10.0.0.1")));
        assert!(!Arc::ptr_eq(&v4, &share("10.0.0.2")));
        assert!(Arc::ptr_eq(&v6, &share("fd00::2")));
        for number in 0..10_000 {
            shares.for_address(std::net::Ipv4Addr::from_bits(number).into());
        }
        assert!(shares.0.lock().len() < 1000);
        assert!(Arc::ptr_eq(&v4, &share("10.0.0.1")), "one that is held is kept");
    }
}

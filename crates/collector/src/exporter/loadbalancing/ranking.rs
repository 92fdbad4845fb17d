//! Rendezvous hashing: which peer a key belongs to.
//!
//! Each pair of a peer and a key has a weight, and a key belongs to the peer with the largest weight. A new
//! peer takes over the keys for which it has the largest weight, one in `n + 1`, and no other key moves; a
//! removed peer leaves its keys to the next ones in their orders, evenly. Weights depend only on names, so that
//! all balancers with the same peers agree.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The hash of a peer's endpoint.
pub(super) fn seed(endpoint: &str) -> u64 {
    xxh3_64(endpoint.as_bytes())
}

/// The hash of a routing key.
pub(super) fn key(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The peer with the largest weight for a key.
pub(super) fn highest_ranked(key: u64, seeds: impl Iterator<Item = (usize, u64)>) -> Option<usize> {
    let weighed = seeds.map(|(peer, seed)| (xxh3_64_with_seed(&key.to_le_bytes(), seed), peer));
    weighed.max().map(|(_, peer)| peer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owners(peers: &[String], keys: &[u64]) -> Vec<String> {
        let seeds: Vec<u64> = peers.iter().map(|peer| seed(peer)).collect();
        let owner = |key: &u64| highest_ranked(*key, seeds.iter().copied().enumerate()).unwrap();
        keys.iter().map(|key| peers[owner(key)].clone()).collect()
    }

    fn names(n: usize, salt: u32) -> Vec<String> {
        (0..n).map(|peer| format!("10.{salt}.0.{peer}:4317")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_peer_that_comes_takes_its_part_and_nothing_else_moves(n in 1usize..20, salt in 0u32..200) {
            let keys: Vec<u64> = (0u64..20_000).map(|number| key(&u128::from(number).to_be_bytes())).collect();
            let more = names(n + 1, salt);
            let before = owners(&more[..n], &keys);
            let after = owners(&more, &keys);
            let moved: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
            prop_assert!(moved.iter().all(|(_, to)| **to == more[n]), "only to the one that came");
            // One in n + 1, and what chance adds: five standard deviations are never met.
            let expected = keys.len() as f64 / (n + 1) as f64;
            prop_assert!((moved.len() as f64) < expected + 5.0 * expected.sqrt(), "{} of {}", moved.len(), expected);
        }

        #[test]
        fn a_peer_that_goes_leaves_its_keys_to_all_others(n in 2usize..12, salt in 0u32..200) {
            let keys: Vec<u64> = (0u64..20_000).map(|number| key(&u128::from(number).to_be_bytes())).collect();
            let all = names(n, salt);
            let before = owners(&all, &keys);
            let after = owners(&all[1..], &keys);
            let heirs: Vec<_> = before.iter().zip(&after).filter(|(a, _)| **a == all[0]).map(|(_, b)| b).collect();
            prop_assert!(before.iter().zip(&after).all(|(a, b)| a == b || *a == all[0]));
            let fair = heirs.len() as f64 / (n - 1) as f64;
            for peer in &all[1..] {
                let got = heirs.iter().filter(|heir| **heir == peer).count() as f64;
                prop_assert!((got - fair).abs() < 5.0 * fair.sqrt() + 1.0, "{got} of {fair}");
            }
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        let mut peers = names(7, 0);
        let keys = (0..1000).collect::<Vec<_>>();
        let before = owners(&peers, &keys);
        peers.reverse();
        assert_eq!(owners(&peers, &keys), before);
    }
}

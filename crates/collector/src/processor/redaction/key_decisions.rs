//! Cache of the decisions on the keys of a request.
//!
//! A request has few keys, each of them many times, mostly in the same order. A cache hit costs less than
//! matching a key against patterns once more.

/// Number of cached keys: more than one instrumentation has, and few enough for a linear search.
const MAX_CACHED_KEYS: usize = 64;
/// Longer keys are not cached. No convention has such a key.
const MAX_CACHED_KEY_BYTES: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyDecision {
    /// Kept, whatever its value is.
    Ignored,
    Removed,
    /// The value is masked, unless it is an allowed one.
    Masked,
    ByValue,
}

/// Keys with their decisions.
#[derive(Debug, Default)]
pub(super) struct KeyDecisionCache {
    known: Vec<(Vec<u8>, KeyDecision)>,
    /// The index behind the last hit: the expected next key, if the order is the same.
    next: usize,
}

impl KeyDecisionCache {
    /// The cached decision on a key, or else the result of `judge`.
    pub(super) fn get_or_decide(&mut self, key: &[u8], judge: impl FnOnce(&[u8]) -> KeyDecision) -> KeyDecision {
        let is_it = |(known, _): &(Vec<u8>, KeyDecision)| known == key;
        let at = if self.known.get(self.next).is_some_and(is_it) {
            Some(self.next)
        } else {
            self.known.iter().position(is_it)
        };
        if let Some((at, (_, judged))) = at.and_then(|at| Some((at, self.known.get(at)?))) {
            self.next = at + 1;
            return *judged;
        }
        let judged = judge(key);
        if self.known.len() < MAX_CACHED_KEYS && key.len() <= MAX_CACHED_KEY_BYTES {
            self.known.push((key.to_vec(), judged));
            self.next = self.known.len();
        }
        judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_judged_once_in_whatever_order_it_comes() {
        let mut keys = KeyDecisionCache::default();
        let mut asked = 0;
        for order in [["a", "b", "c"], ["a", "b", "c"], ["c", "a", "b"], ["b", "b", "a"]] {
            for key in order {
                let judged = keys.get_or_decide(key.as_bytes(), |key| {
                    asked += 1;
                    if key == b"b" { KeyDecision::Removed } else { KeyDecision::ByValue }
                });
                assert_eq!(judged, if key == "b" { KeyDecision::Removed } else { KeyDecision::ByValue });
            }
        }
        assert_eq!(asked, 3);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut keys = KeyDecisionCache::default();
        for number in 0..10 * MAX_CACHED_KEYS {
            keys.get_or_decide(number.to_string().as_bytes(), |_| KeyDecision::Ignored);
        }
        keys.get_or_decide(&[b'a'; MAX_CACHED_KEY_BYTES + 1], |_| KeyDecision::Masked);
        assert_eq!(keys.known.len(), MAX_CACHED_KEYS);
        assert_eq!(keys.get_or_decide(b"600", |_| KeyDecision::Masked), KeyDecision::Masked, "it was not remembered");
    }
}

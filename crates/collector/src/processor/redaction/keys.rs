//! What was said of the keys of a request.
//!
//! A request has few keys and each of them many times, mostly in the same order. To know a key costs less than to match it against
//! patterns once more.

/// Keys that are remembered: more than one instrumentation has, and few enough to look through.
const MOST: usize = 64;
/// Longer ones are not remembered. No convention has such a key.
const LONGEST: usize = 128;

/// What a key decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It stays, whatever its value is.
    Ignored,
    /// It goes.
    Removed,
    /// Its value is masked, unless that is an allowed one.
    Masked,
    /// The value decides.
    ByValue,
}

/// Keys, with what was said of them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: Vec<(Vec<u8>, Judged)>,
    /// Behind the one that came last: the one that comes next, if the order is as it was.
    next: usize,
}

impl Keys {
    /// What is known of a key, or else what `judge` says.
    pub(super) fn judge(&mut self, key: &[u8], judge: impl FnOnce(&[u8]) -> Judged) -> Judged {
        let is_it = |(known, _): &(Vec<u8>, Judged)| known == key;
        let at = match self.known.get(self.next).is_some_and(is_it) {
            true => Some(self.next),
            false => self.known.iter().position(is_it),
        };
        if let Some((at, (_, judged))) = at.and_then(|at| Some((at, self.known.get(at)?))) {
            self.next = at + 1;
            return *judged;
        }
        let judged = judge(key);
        if self.known.len() < MOST && key.len() <= LONGEST {
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
        let (mut keys, mut asked) = (Keys::default(), 0);
        for order in [["a", "b", "c"], ["a", "b", "c"], ["c", "a", "b"], ["b", "b", "a"]] {
            for key in order {
                let judged = keys.judge(key.as_bytes(), |key| {
                    asked += 1;
                    if key == b"b" { Judged::Removed } else { Judged::ByValue }
                });
                assert_eq!(judged, if key == "b" { Judged::Removed } else { Judged::ByValue });
            }
        }
        assert_eq!(asked, 3);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut keys = Keys::default();
        for number in 0..10 * MOST {
            keys.judge(number.to_string().as_bytes(), |_| Judged::Ignored);
        }
        keys.judge(&[b'a'; LONGEST + 1], |_| Judged::Masked);
        assert_eq!(keys.known.len(), MOST);
        assert_eq!(keys.judge(b"600", |_| Judged::Masked), Judged::Masked, "it was not remembered");
    }
}

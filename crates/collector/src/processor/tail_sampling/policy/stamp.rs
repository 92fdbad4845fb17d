//! What a kept span says of the decision: who kept its trace, and how many it stands for.

use super::weight::Weight;

/// A deciding policy and a weight, as two small numbers. It stays valid when policies change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct Stamp {
    policy: u16,
    weight: u16,
}

/// All stamps that there are or were. A new set of policies adds its own to those of the old one.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Stamps {
    /// Number 1 is the first; 0 is nobody.
    policies: Vec<Policy>,
    /// Number 1 is the first; 0 is no probability.
    weights: Vec<Weight>,
}

/// The name of a policy, and of the part of a composite that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Policy {
    pub(in super::super) name: String,
    pub(in super::super) part: Option<String>,
}

impl Stamps {
    /// The stamp of a policy. After 65 535 of them a further one has none.
    pub(super) fn of(&mut self, name: &str, part: Option<&str>) -> Stamp {
        let policy = Policy { name: name.to_owned(), part: part.map(str::to_owned) };
        Stamp { policy: number(&mut self.policies, policy), weight: 0 }
    }

    /// From now on there can be stamps with this weight.
    pub(super) fn know(&mut self, weight: Weight) {
        if weight.says_something() {
            number(&mut self.weights, weight);
        }
    }

    /// The stamp with a weight, if that is a known one.
    pub(in super::super) fn at(&self, stamp: Stamp, weight: Weight) -> Stamp {
        let known = self.weights.iter().position(|known| *known == weight);
        let number = known.filter(|_| weight.says_something()).and_then(|at| u16::try_from(at + 1).ok());
        Stamp { weight: number.unwrap_or(0), ..stamp }
    }

    /// Who decided.
    pub(in super::super) fn policy(&self, stamp: Stamp) -> Option<&Policy> {
        self.policies.get(usize::from(stamp.policy).checked_sub(1)?)
    }

    /// How many it stands for, if the decision had a probability.
    pub(in super::super) fn weight(&self, stamp: Stamp) -> Option<Weight> {
        self.weights.get(usize::from(stamp.weight).checked_sub(1)?).copied()
    }
}

impl Stamp {
    /// As a note in a cache.
    pub(in super::super) fn note(self) -> u32 {
        u32::from(self.policy) << 16 | u32::from(self.weight)
    }

    /// From a note in a cache.
    pub(in super::super) fn from_note(note: u32) -> Self {
        Self { policy: (note >> 16) as u16, weight: note as u16 }
    }
}

fn number<T: PartialEq>(list: &mut Vec<T>, item: T) -> u16 {
    let known = list.iter().position(|known| *known == item);
    let at = known.or_else(|| {
        (list.len() < usize::from(u16::MAX)).then(|| {
            list.push(item);
            list.len() - 1
        })
    });
    at.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0)
}

//! The stamp of a decision: the policy that kept a trace, and the weight of the trace.

use super::weight::SampleWeight;

/// A deciding policy and a weight, as two small numbers. It stays valid when policies change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct DecisionStamp {
    policy: u16,
    weight: u16,
}

/// All current and former stamps. A new set of policies adds its own stamps to those of the old one.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct StampTable {
    /// Index 0 is number 1; number 0 is no policy.
    policies: Vec<PolicyName>,
    /// Index 0 is number 1; number 0 is no weight.
    weights: Vec<SampleWeight>,
}

/// The name of a policy, and of the sub-policy of a composite that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct PolicyName {
    pub(in super::super) name: String,
    pub(in super::super) part: Option<String>,
}

impl StampTable {
    /// The stamp of a policy. After 65 535 policies a further one has no stamp.
    pub(super) fn intern_policy(&mut self, name: &str, part: Option<&str>) -> DecisionStamp {
        let policy = PolicyName { name: name.to_owned(), part: part.map(str::to_owned) };
        DecisionStamp { policy: intern(&mut self.policies, policy), weight: 0 }
    }

    /// Allows stamps with this weight from now on.
    pub(super) fn intern_weight(&mut self, weight: SampleWeight) {
        if weight.is_fractional() {
            intern(&mut self.weights, weight);
        }
    }

    /// The stamp with a weight, if that weight is known.
    pub(in super::super) fn with_weight(&self, stamp: DecisionStamp, weight: SampleWeight) -> DecisionStamp {
        let known = self.weights.iter().position(|known| *known == weight);
        let number = known.filter(|_| weight.is_fractional()).and_then(|at| u16::try_from(at + 1).ok());
        DecisionStamp { weight: number.unwrap_or(0), ..stamp }
    }

    pub(in super::super) fn policy(&self, stamp: DecisionStamp) -> Option<&PolicyName> {
        self.policies.get(usize::from(stamp.policy).checked_sub(1)?)
    }

    /// The weight of a kept trace, if the decision had a probability.
    pub(in super::super) fn weight(&self, stamp: DecisionStamp) -> Option<SampleWeight> {
        self.weights.get(usize::from(stamp.weight).checked_sub(1)?).copied()
    }
}

impl DecisionStamp {
    /// The note for a decision cache.
    pub(in super::super) fn note(self) -> u32 {
        u32::from(self.policy) << 16 | u32::from(self.weight)
    }

    /// The stamp of a decision cache's note.
    pub(in super::super) fn from_note(note: u32) -> Self {
        Self { policy: (note >> 16) as u16, weight: note as u16 }
    }
}

fn intern<T: PartialEq>(list: &mut Vec<T>, item: T) -> u16 {
    let known = list.iter().position(|known| *known == item);
    let at = known.or_else(|| {
        (list.len() < usize::from(u16::MAX)).then(|| {
            list.push(item);
            list.len() - 1
        })
    });
    at.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0)
}

//! Compiled policies: bits that spans set when they arrive, and trees that are evaluated at the decision.

mod compile;
mod observe;
mod probability;
mod rate_limit;
mod stamp;
mod trace_state;
mod weight;

use std::{sync::Arc, time::Duration};

use kubewake_config::model::{SamplingPolicy, SamplingRule, SamplingStrategy, TailSamplingProcessor};
use kubewake_otlp::probability::Randomness;

use self::{
    compile::PolicyCompiler,
    probability::{TraceProbability, threshold},
    rate_limit::{SpansPerSecond, TokenBucket},
};
pub(super) use self::{
    observe::{SpanFacts, SpanObserver, TraceDuration},
    stamp::{DecisionStamp, StampTable},
    weight::SampleWeight,
};
use crate::core::{PolicyStats, SamplingOutcome, TailSamplerStats};

/// The policies that apply now.
pub(super) struct PolicySet {
    /// Identifies the set: bits observed for one set mean nothing to another.
    pub(super) generation: u32,
    pub(super) observer: SpanObserver,
    pub(super) stamps: StampTable,
    /// Policies that drop come first.
    list: Vec<CompiledPolicy>,
    first_match: bool,
    strategy: SamplingStrategy,
    overload: SampleWeight,
}

struct CompiledPolicy {
    source: SamplingPolicy,
    node: PolicyNode,
    /// The stamp of traces that the policy keeps; the stamps of a composite's sub-policies follow.
    stamp: DecisionStamp,
    stats: Arc<PolicyStats>,
    /// A "keep" of the policy stays one when more spans arrive.
    is_lasting: bool,
}

enum PolicyNode {
    Always,
    Bit { bit: usize, invert: bool },
    Chance(TraceProbability),
    Spans { min: i64, max: i64 },
    Rate(Arc<TokenBucket>),
    Bytes(Arc<TokenBucket>),
    And(Vec<PolicyNode>),
    Not(Box<PolicyNode>),
    Drop(Vec<PolicyNode>),
    Composite { max: i64, parts: Vec<CompositeSubPolicy> },
}

struct CompositeSubPolicy {
    node: PolicyNode,
    share: i64,
    used: Arc<SpansPerSecond>,
    stamp: DecisionStamp,
}

/// The facts about a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceFacts<'a> {
    pub(super) id: u128,
    pub(super) bits: &'a [u64],
    pub(super) spans: u64,
    pub(super) bytes: u64,
    pub(super) randomness: Option<Randomness>,
    /// Time since the start of the processor.
    pub(super) now: Duration,
}

/// The decision on a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplingDecision {
    /// The trace is kept, and its spans carry the stamp.
    Kept(DecisionStamp),
    NotSampled,
    Dropped,
}

/// The result of a node: whether it keeps the trace, the weight of the trace then, and the deciding sub-policy
/// of a composite.
struct PolicyReply {
    keeps: bool,
    weight: SampleWeight,
    part: Option<DecisionStamp>,
}

impl From<bool> for PolicyReply {
    fn from(keeps: bool) -> Self {
        Self { keeps, weight: SampleWeight::ONE, part: None }
    }
}

impl PolicySet {
    /// Compiles settings. Limits of unchanged policies keep the part that is used up; stamps that spans may
    /// carry stay valid.
    pub(super) fn new(settings: &TailSamplingProcessor, stats: &TailSamplerStats, old: Option<&Self>) -> Self {
        let mut compiler = PolicyCompiler {
            observer: SpanObserver::default(),
            stamps: old.map(|old| old.stamps.clone()).unwrap_or_default(),
            old: old.map(|old| old.list.as_slice()).unwrap_or_default(),
        };
        let overload = SampleWeight::by_randomness(threshold(settings.overload_percentage));
        compiler.stamps.intern_weight(overload);
        let (drops, others): (Vec<_>, Vec<_>) =
            settings.policies.iter().partition(|policy| matches!(policy.rule, SamplingRule::Drop(_)));
        let list = drops.into_iter().chain(others).map(|policy| compiler.policy(policy, stats)).collect();
        Self {
            generation: old.map_or(0, |old| old.generation.wrapping_add(1)),
            observer: compiler.observer,
            stamps: compiler.stamps,
            list,
            first_match: settings.sample_on_first_match,
            strategy: settings.strategy,
            overload,
        }
    }

    /// Decides a trace without memory to wait, by its randomness alone.
    pub(super) fn decide_in_overload(&self, randomness: Randomness) -> SamplingDecision {
        if self.overload.threshold.keeps(randomness) {
            SamplingDecision::Kept(self.stamps.with_weight(DecisionStamp::default(), self.overload))
        } else {
            SamplingDecision::NotSampled
        }
    }

    /// Whether there are more conditions than bits; then spans are read again at the decision.
    pub(super) fn exceeds_bit_word(&self) -> bool {
        self.observer.word_count() > 1
    }

    /// Whether each arrival is decided by itself. Not with more conditions than bits: the spans would have to
    /// be read again each time, and the trace waits instead.
    pub(super) fn decides_by_arrival(&self) -> bool {
        self.strategy == SamplingStrategy::SpanIngest && !self.exceeds_bit_word()
    }

    /// Whether a trace may be decided before it is due.
    pub(super) fn may_decide_early(&self) -> bool {
        self.first_match && !self.exceeds_bit_word() && !self.list.iter().any(CompiledPolicy::drops)
    }

    /// Decides a whole trace.
    pub(super) fn decide(&self, facts: &TraceFacts<'_>) -> SamplingDecision {
        let mut kept: Option<(DecisionStamp, SampleWeight)> = None;
        for (at, policy) in self.list.iter().enumerate() {
            let reply = policy.node.evaluate(facts);
            policy.count(&reply, facts);
            if !reply.keeps {
                continue;
            }
            if policy.drops() {
                return SamplingDecision::Dropped;
            }
            if self.first_match {
                return self.keep_by_policy(policy, &reply, at, facts);
            }
            let stamp = reply.part.unwrap_or(policy.stamp);
            kept = Some(kept.map_or((stamp, reply.weight), |(stamp, least)| (stamp, least.min(reply.weight))));
        }
        kept.map_or(SamplingDecision::NotSampled, |(stamp, weight)| {
            SamplingDecision::Kept(self.stamps.with_weight(stamp, weight))
        })
    }

    /// Decides an arrival: later spans may still keep or drop a trace that this arrival does not.
    pub(super) fn decide_arrival(&self, facts: &TraceFacts<'_>) -> Option<SamplingDecision> {
        // A dropping policy that has not dropped may still do so, and until then no policy may keep the trace.
        let mut may_drop = false;
        for (at, policy) in self.list.iter().enumerate() {
            if may_drop && !policy.drops() {
                return None;
            }
            let reply = policy.node.evaluate(facts);
            policy.count(&reply, facts);
            match (policy.drops(), reply.keeps) {
                (true, true) => return Some(SamplingDecision::Dropped),
                (true, false) => may_drop = true,
                (false, true) => return Some(self.keep_by_policy(policy, &reply, at, facts)),
                (false, false) => {}
            }
        }
        None
    }

    /// Keeps a trace before it is due if a policy keeps it whatever spans follow.
    pub(super) fn decide_early(&self, facts: &TraceFacts<'_>) -> Option<SamplingDecision> {
        let mut replies =
            self.list.iter().filter(|policy| policy.is_lasting).map(|policy| (policy, policy.node.evaluate(facts)));
        let (policy, reply) = replies.find(|(_, reply)| reply.keeps)?;
        policy.count(&reply, facts);
        Some(SamplingDecision::Kept(self.stamps.with_weight(policy.stamp, reply.weight)))
    }

    /// The policy at this index keeps the trace. Policies behind it are only evaluated for the trace's weight.
    fn keep_by_policy(
        &self,
        policy: &CompiledPolicy,
        reply: &PolicyReply,
        at: usize,
        facts: &TraceFacts<'_>,
    ) -> SamplingDecision {
        let others = self.list.iter().skip(at + 1).map(|policy| &policy.node);
        let weight = least_weight(reply.weight, others, facts);
        SamplingDecision::Kept(self.stamps.with_weight(reply.part.unwrap_or(policy.stamp), weight))
    }
}

impl CompiledPolicy {
    fn drops(&self) -> bool {
        matches!(self.node, PolicyNode::Drop(_))
    }

    fn count(&self, reply: &PolicyReply, facts: &TraceFacts<'_>) {
        let outcome = match (reply.keeps, self.drops()) {
            (true, true) => SamplingOutcome::Dropped,
            (true, false) => SamplingOutcome::Sampled,
            (false, _) => SamplingOutcome::NotSampled,
        };
        self.stats.count(outcome, facts.spans, facts.bytes);
    }
}

impl PolicyNode {
    fn evaluate(&self, facts: &TraceFacts<'_>) -> PolicyReply {
        match self {
            Self::Always => true.into(),
            Self::Bit { bit, invert } => (bit_is_set(facts.bits, *bit) != *invert).into(),
            Self::Chance(chance) => {
                let keeps = chance.keeps(facts.id, facts.randomness);
                PolicyReply { keeps, weight: chance.weight(facts.randomness), part: None }
            }
            Self::Spans { min, max } => {
                let spans = i64::try_from(facts.spans).unwrap_or(i64::MAX);
                (spans >= *min && (*max == 0 || spans <= *max)).into()
            }
            Self::Rate(bucket) => bucket.take(facts.spans, facts.now).into(),
            Self::Bytes(bucket) => bucket.take(facts.bytes, facts.now).into(),
            Self::And(nodes) => evaluate_all(nodes, facts),
            Self::Drop(nodes) => evaluate_all(nodes, facts).keeps.into(),
            Self::Not(node) => (!node.evaluate(facts).keeps).into(),
            Self::Composite { max, parts } => {
                let mut replies = parts.iter().map(|part| (part, part.node.evaluate(facts)));
                let Some((part, reply)) = replies.find(|(_, reply)| reply.keeps) else { return false.into() };
                let keeps = part.used.take(facts.spans, part.share.min(*max), facts.now);
                // A sub-policy without any of its share left would not have kept the trace.
                let could = |other: &&CompositeSubPolicy| {
                    !std::ptr::eq(*other, part) && other.used.has_room(facts.spans, other.share.min(*max), facts.now)
                };
                let others = parts.iter().filter(could).map(|other| &other.node);
                PolicyReply { keeps, weight: least_weight(reply.weight, others, facts), part: Some(part.stamp) }
            }
        }
    }

    /// Whether evaluation uses up a limit.
    fn is_limited(&self) -> bool {
        match self {
            Self::Rate(_) | Self::Bytes(_) | Self::Composite { .. } => true,
            Self::And(nodes) | Self::Drop(nodes) => nodes.iter().any(Self::is_limited),
            Self::Not(node) => node.is_limited(),
            Self::Always | Self::Bit { .. } | Self::Chance(_) | Self::Spans { .. } => false,
        }
    }
}

/// The weight of a kept trace with regard to these policies, which were not evaluated: a trace that they would
/// have kept anyway stands for no more than their weight. Policies with a limit are left out.
fn least_weight<'a>(
    weight: SampleWeight,
    others: impl Iterator<Item = &'a PolicyNode>,
    facts: &TraceFacts<'_>,
) -> SampleWeight {
    if weight == SampleWeight::ONE {
        return weight;
    }
    let replies = others.filter(|node| !node.is_limited()).map(|node| node.evaluate(facts));
    replies.filter(|reply| reply.keeps).map(|reply| reply.weight).fold(weight, SampleWeight::min)
}

/// The conjunction of all nodes, at their highest threshold.
fn evaluate_all(nodes: &[PolicyNode], facts: &TraceFacts<'_>) -> PolicyReply {
    let mut weight = SampleWeight::ONE;
    for node in nodes {
        let reply = node.evaluate(facts);
        if !reply.keeps {
            return false.into();
        }
        weight = weight.max(reply.weight);
    }
    PolicyReply { keeps: true, weight, part: None }
}

fn bit_is_set(bits: &[u64], bit: usize) -> bool {
    bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

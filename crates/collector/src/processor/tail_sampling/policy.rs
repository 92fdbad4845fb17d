//! Policies, compiled: bits that spans set when they arrive, and trees that are asked when it is time.

mod chance;
mod compile;
mod limit;
mod observe;
mod stamp;
mod trace_state;
mod weight;

use std::{sync::Arc, time::Duration};

use kubewake_config::model::{SamplingPolicy, SamplingRule, SamplingStrategy, TailSampling};
use kubewake_otlp::probability::Randomness;

use self::{
    chance::{Chance, threshold},
    compile::Compiler,
    limit::{Bucket, PerSecond},
};
pub(super) use self::{
    observe::{Observer, Seen, Times},
    stamp::{Stamp, Stamps},
    weight::Weight,
};
use crate::core::{PolicyStats, SamplingOutcome, TailStats};

/// A set of policies that is in force.
pub(super) struct Policies {
    /// Tells sets apart: what was observed for one says nothing to another.
    pub(super) generation: u32,
    pub(super) observer: Observer,
    pub(super) stamps: Stamps,
    /// Those that drop come first.
    list: Vec<Compiled>,
    first_match: bool,
    strategy: SamplingStrategy,
    overload: Weight,
}

struct Compiled {
    source: SamplingPolicy,
    node: Node,
    /// Kept by it; with the parts of a composite behind.
    stamp: Stamp,
    stats: Arc<PolicyStats>,
    /// What it says does not change when more spans come, once it is yes.
    is_lasting: bool,
}

enum Node {
    Always,
    Bit { bit: usize, invert: bool },
    Chance(Chance),
    Spans { min: i64, max: i64 },
    Rate(Arc<Bucket>),
    Bytes(Arc<Bucket>),
    And(Vec<Node>),
    Not(Box<Node>),
    Drop(Vec<Node>),
    Composite { max: i64, parts: Vec<Part> },
}

struct Part {
    node: Node,
    share: i64,
    used: Arc<PerSecond>,
    stamp: Stamp,
}

/// What is known of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) id: u128,
    pub(super) bits: &'a [u64],
    pub(super) spans: u64,
    pub(super) bytes: u64,
    pub(super) randomness: Option<Randomness>,
    /// Since the start of the processor.
    pub(super) now: Duration,
}

/// What becomes of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is kept, and its spans say so.
    Kept(Stamp),
    /// No policy kept it.
    NotSampled,
    /// A policy dropped it.
    Dropped,
}

/// The answer of a node: whether it keeps the trace, how many that stands for then, and which part of a composite said so.
struct Reply {
    keeps: bool,
    weight: Weight,
    part: Option<Stamp>,
}

impl From<bool> for Reply {
    fn from(keeps: bool) -> Self {
        Self { keeps, weight: Weight::ONE, part: None }
    }
}

impl Policies {
    /// Compiles. Limits of policies that did not change keep what they have used; stamps that spans may carry stay valid.
    pub(super) fn new(settings: &TailSampling, stats: &TailStats, old: Option<&Self>) -> Self {
        let mut compiler = Compiler {
            observer: Observer::default(),
            stamps: old.map(|old| old.stamps.clone()).unwrap_or_default(),
            old: old.map(|old| old.list.as_slice()).unwrap_or_default(),
        };
        let overload = Weight::by_randomness(threshold(settings.overload_percentage));
        compiler.stamps.know(overload);
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

    /// Decides on a trace that there is no memory to wait for, by its randomness alone.
    pub(super) fn decide_at_once(&self, randomness: Randomness) -> Verdict {
        match self.overload.threshold.keeps(randomness) {
            true => Verdict::Kept(self.stamps.at(Stamp::default(), self.overload)),
            false => Verdict::NotSampled,
        }
    }

    /// Whether there are more conditions than a trace has bits for; then its spans are read when it is decided on.
    pub(super) fn is_wide(&self) -> bool {
        self.observer.words() > 1
    }

    /// Whether each arrival is decided on by itself. Not where there are more conditions than bits: then its spans would have to be read
    /// again each time, and the trace waits instead.
    pub(super) fn by_arrival(&self) -> bool {
        self.strategy == SamplingStrategy::SpanIngest && !self.is_wide()
    }

    /// Whether a trace may be decided on before it is time.
    pub(super) fn may_decide_early(&self) -> bool {
        self.first_match && !self.is_wide() && !self.list.iter().any(Compiled::drops)
    }

    /// Decides on a whole trace.
    pub(super) fn decide(&self, facts: &Facts<'_>) -> Verdict {
        let mut kept: Option<(Stamp, Weight)> = None;
        for (at, policy) in self.list.iter().enumerate() {
            let reply = policy.node.ask(facts);
            policy.count(&reply, facts);
            if !reply.keeps {
                continue;
            }
            if policy.drops() {
                return Verdict::Dropped;
            }
            if self.first_match {
                return self.keep(policy, &reply, at, facts);
            }
            let stamp = reply.part.unwrap_or(policy.stamp);
            kept = Some(kept.map_or((stamp, reply.weight), |(stamp, least)| (stamp, least.min(reply.weight))));
        }
        kept.map_or(Verdict::NotSampled, |(stamp, weight)| Verdict::Kept(self.stamps.at(stamp, weight)))
    }

    /// Decides on an arrival: a trace that is not kept or dropped by what came now may still be by what comes.
    pub(super) fn decide_arrival(&self, facts: &Facts<'_>) -> Option<Verdict> {
        // One that drops and has not may still do so, and until then nobody may keep the trace.
        let mut may_drop = false;
        for (at, policy) in self.list.iter().enumerate() {
            if may_drop && !policy.drops() {
                return None;
            }
            let reply = policy.node.ask(facts);
            policy.count(&reply, facts);
            match (policy.drops(), reply.keeps) {
                (true, true) => return Some(Verdict::Dropped),
                (true, false) => may_drop = true,
                (false, true) => return Some(self.keep(policy, &reply, at, facts)),
                (false, false) => {}
            }
        }
        None
    }

    /// Keeps a trace before it is time if a policy will keep it whatever comes.
    pub(super) fn decide_early(&self, facts: &Facts<'_>) -> Option<Verdict> {
        let mut replies =
            self.list.iter().filter(|policy| policy.is_lasting).map(|policy| (policy, policy.node.ask(facts)));
        let (policy, reply) = replies.find(|(_, reply)| reply.keeps)?;
        policy.count(&reply, facts);
        Some(Verdict::Kept(self.stamps.at(policy.stamp, reply.weight)))
    }

    /// The policy at this place keeps the trace, and nobody behind it is asked, except for what the trace stands for.
    fn keep(&self, policy: &Compiled, reply: &Reply, at: usize, facts: &Facts<'_>) -> Verdict {
        let others = self.list.iter().skip(at + 1).map(|policy| &policy.node);
        let weight = least(reply.weight, others, facts);
        Verdict::Kept(self.stamps.at(reply.part.unwrap_or(policy.stamp), weight))
    }
}

impl Compiled {
    fn drops(&self) -> bool {
        matches!(self.node, Node::Drop(_))
    }

    fn count(&self, reply: &Reply, facts: &Facts<'_>) {
        let outcome = match (reply.keeps, self.drops()) {
            (true, true) => SamplingOutcome::Dropped,
            (true, false) => SamplingOutcome::Sampled,
            (false, _) => SamplingOutcome::NotSampled,
        };
        self.stats.count(outcome, facts.spans, facts.bytes);
    }
}

impl Node {
    fn ask(&self, facts: &Facts<'_>) -> Reply {
        match self {
            Self::Always => true.into(),
            Self::Bit { bit, invert } => (bit_is_set(facts.bits, *bit) != *invert).into(),
            Self::Chance(chance) => {
                let keeps = chance.keeps(facts.id, facts.randomness);
                Reply { keeps, weight: chance.weight(facts.randomness), part: None }
            }
            Self::Spans { min, max } => {
                let spans = i64::try_from(facts.spans).unwrap_or(i64::MAX);
                (spans >= *min && (*max == 0 || spans <= *max)).into()
            }
            Self::Rate(bucket) => bucket.take(facts.spans, facts.now).into(),
            Self::Bytes(bucket) => bucket.take(facts.bytes, facts.now).into(),
            Self::And(nodes) => all(nodes, facts),
            Self::Drop(nodes) => all(nodes, facts).keeps.into(),
            Self::Not(node) => (!node.ask(facts).keeps).into(),
            Self::Composite { max, parts } => {
                let mut replies = parts.iter().map(|part| (part, part.node.ask(facts)));
                let Some((part, reply)) = replies.find(|(_, reply)| reply.keeps) else { return false.into() };
                let keeps = part.used.take(facts.spans, part.share.min(*max), facts.now);
                // Without something left of its share another one would not have kept it, whatever it says.
                let could = |other: &&Part| {
                    !std::ptr::eq(*other, part) && other.used.has_room(facts.spans, other.share.min(*max), facts.now)
                };
                let others = parts.iter().filter(could).map(|other| &other.node);
                Reply { keeps, weight: least(reply.weight, others, facts), part: Some(part.stamp) }
            }
        }
    }

    /// Whether to ask it uses something up.
    fn is_limited(&self) -> bool {
        match self {
            Self::Rate(_) | Self::Bytes(_) | Self::Composite { .. } => true,
            Self::And(nodes) | Self::Drop(nodes) => nodes.iter().any(Self::is_limited),
            Self::Not(node) => node.is_limited(),
            Self::Always | Self::Bit { .. } | Self::Chance(_) | Self::Spans { .. } => false,
        }
    }
}

/// What a kept trace stands for, if these others were not asked: one that they would have kept anyway stands for no more than
/// that says. Whoever has a limit is not asked for it.
fn least<'a>(weight: Weight, others: impl Iterator<Item = &'a Node>, facts: &Facts<'_>) -> Weight {
    if weight == Weight::ONE {
        return weight;
    }
    let replies = others.filter(|node| !node.is_limited()).map(|node| node.ask(facts));
    replies.filter(|reply| reply.keeps).map(|reply| reply.weight).fold(weight, Weight::min)
}

/// What all keep, at the highest threshold of them.
fn all(nodes: &[Node], facts: &Facts<'_>) -> Reply {
    let mut weight = Weight::ONE;
    for node in nodes {
        let reply = node.ask(facts);
        if !reply.keeps {
            return false.into();
        }
        weight = weight.max(reply.weight);
    }
    Reply { keeps: true, weight, part: None }
}

fn bit_is_set(bits: &[u64], bit: usize) -> bool {
    bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

//! Policies, compiled: bits that spans set when they arrive, and trees that are asked when it is time.

mod chance;
mod compile;
mod limit;
mod observe;
mod stamp;
mod trace_state;

use std::{sync::Arc, time::Duration};

use kubewake_config::model::{SamplingPolicy, SamplingRule, SamplingStrategy, TailSampling};
use kubewake_otlp::probability::{Randomness, Threshold};

use self::{
    chance::Chance,
    compile::Compiler,
    limit::{Bucket, PerSecond},
};
pub(super) use self::{
    chance::threshold,
    observe::{Observer, Seen, Times},
    stamp::{Stamp, Stamps},
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
    overload: Threshold,
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

/// The answer of a node: whether it keeps the trace, at which threshold, and which part of a composite said so.
struct Reply {
    keeps: bool,
    threshold: Threshold,
    part: Option<Stamp>,
}

impl From<bool> for Reply {
    fn from(keeps: bool) -> Self {
        Self { keeps, threshold: Threshold::ALWAYS, part: None }
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
        let overload = threshold(settings.overload_percentage);
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
        match self.overload.keeps(randomness) {
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
        let mut kept: Option<Stamp> = None;
        let mut least = Threshold::NEVER;
        for policy in &self.list {
            let reply = policy.node.ask(facts);
            policy.count(&reply, facts);
            if !reply.keeps {
                continue;
            }
            if policy.drops() {
                return Verdict::Dropped;
            }
            least = least.min(reply.threshold);
            kept.get_or_insert(reply.part.unwrap_or(policy.stamp));
            if self.first_match {
                break;
            }
        }
        self.verdict(kept, least)
    }

    /// Decides on an arrival: a trace that is not kept or dropped by what came now may still be by what comes.
    pub(super) fn decide_arrival(&self, facts: &Facts<'_>) -> Option<Verdict> {
        // One that drops and has not may still do so, and until then nobody may keep the trace.
        let mut may_drop = false;
        for policy in &self.list {
            if may_drop && !policy.drops() {
                return None;
            }
            let reply = policy.node.ask(facts);
            policy.count(&reply, facts);
            match (policy.drops(), reply.keeps) {
                (true, true) => return Some(Verdict::Dropped),
                (true, false) => may_drop = true,
                (false, true) => return Some(self.verdict(Some(policy.stamp), reply.threshold)),
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
        Some(self.verdict(Some(policy.stamp), reply.threshold))
    }

    fn verdict(&self, kept: Option<Stamp>, threshold: Threshold) -> Verdict {
        match kept {
            Some(stamp) => Verdict::Kept(self.stamps.at(stamp, threshold)),
            None => Verdict::NotSampled,
        }
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
                Reply { keeps, threshold: chance.threshold(), part: None }
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
                let Some(part) = parts.iter().find(|part| part.node.ask(facts).keeps) else { return false.into() };
                let keeps = part.used.take(facts.spans, part.share.min(*max), facts.now);
                Reply { keeps, threshold: Threshold::ALWAYS, part: Some(part.stamp) }
            }
        }
    }
}

/// What all keep, at the highest threshold of them.
fn all(nodes: &[Node], facts: &Facts<'_>) -> Reply {
    let mut threshold = Threshold::ALWAYS;
    for node in nodes {
        let reply = node.ask(facts);
        if !reply.keeps {
            return false.into();
        }
        threshold = threshold.max(reply.threshold);
    }
    Reply { keeps: true, threshold, part: None }
}

fn bit_is_set(bits: &[u64], bit: usize) -> bool {
    bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

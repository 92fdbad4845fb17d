//! From settings to policies.

use std::sync::Arc;

use kubewake_config::model::{SamplingPolicy, SamplingRule};

use super::{
    Compiled, Node, Part,
    chance::Chance,
    limit::Bucket,
    observe::{Condition, Observer},
    stamp::Stamps,
};
use crate::core::TailStats;

/// Makes trees of settings, and gives each condition its bit.
pub(super) struct Compiler<'a> {
    pub(super) observer: Observer,
    pub(super) stamps: Stamps,
    pub(super) old: &'a [Compiled],
}

impl Compiler<'_> {
    pub(super) fn policy(&mut self, policy: &SamplingPolicy, stats: &TailStats) -> Compiled {
        let old = self.old.iter().find(|old| old.source == *policy).map(|old| &old.node);
        let stamp = self.stamps.of(&policy.name, None);
        Compiled {
            node: self.node(policy, old),
            source: policy.clone(),
            stamp,
            stats: stats.policy(&policy.name),
            is_lasting: is_lasting(&policy.rule),
        }
    }

    fn node(&mut self, policy: &SamplingPolicy, old: Option<&Node>) -> Node {
        if let Some((condition, invert)) = Condition::of(&policy.rule) {
            return Node::Bit { bit: self.observer.bit(condition), invert };
        }
        match &policy.rule {
            SamplingRule::Probabilistic { salt, percentage } => {
                let chance = Chance::new(salt, *percentage);
                chance.weights().into_iter().for_each(|weight| self.stamps.know(weight));
                Node::Chance(chance)
            }
            SamplingRule::SpanCount { min, max } => Node::Spans { min: *min, max: *max },
            SamplingRule::RateLimiting(allowed) => Node::Rate(match old {
                Some(Node::Rate(bucket)) => bucket.clone(),
                _ => Arc::new(Bucket::new(*allowed)),
            }),
            SamplingRule::BytesLimiting(allowed) => Node::Bytes(match old {
                Some(Node::Bytes(bucket)) => bucket.clone(),
                _ => Arc::new(Bucket::new(*allowed)),
            }),
            SamplingRule::And(parts) => Node::And(self.nodes(parts, old)),
            SamplingRule::Drop(parts) => Node::Drop(self.nodes(parts, old)),
            SamplingRule::Not(part) => {
                let old = if let Some(Node::Not(old)) = old { Some(&**old) } else { None };
                Node::Not(Box::new(self.node(part, old)))
            }
            SamplingRule::Composite { max_total, parts } => {
                let part =
                    |(at, (part, share)): (usize, &(SamplingPolicy, i64))| self.part(policy, part, *share, old, at);
                Node::Composite { max: *max_total, parts: parts.iter().enumerate().map(part).collect() }
            }
            _ => Node::Always,
        }
    }

    fn nodes(&mut self, parts: &[SamplingPolicy], old: Option<&Node>) -> Vec<Node> {
        let old = match old {
            Some(Node::And(old) | Node::Drop(old)) => old.as_slice(),
            _ => &[],
        };
        parts.iter().enumerate().map(|(at, part)| self.node(part, old.get(at))).collect()
    }

    fn part(
        &mut self,
        whole: &SamplingPolicy,
        part: &SamplingPolicy,
        share: i64,
        old: Option<&Node>,
        at: usize,
    ) -> Part {
        let old = match old {
            Some(Node::Composite { parts, .. }) => parts.get(at),
            _ => None,
        };
        Part {
            node: self.node(part, old.map(|old| &old.node)),
            share,
            used: old.map(|old| old.used.clone()).unwrap_or_default(),
            stamp: self.stamps.of(&whole.name, Some(&part.name)),
        }
    }
}

/// Whether more spans can never turn a yes into a no.
fn is_lasting(rule: &SamplingRule) -> bool {
    match rule {
        SamplingRule::Always
        | SamplingRule::Status { .. }
        | SamplingRule::TraceState { .. }
        | SamplingRule::TraceFlags => true,
        SamplingRule::Text { invert, .. }
        | SamplingRule::Numeric { invert, .. }
        | SamplingRule::Boolean { invert, .. } => !invert,
        // A bit that was set stays set, even that of a duration which has grown beyond its upper bound.
        SamplingRule::Latency { .. } => true,
        SamplingRule::SpanCount { max, .. } => *max == 0,
        SamplingRule::And(parts) => parts.iter().all(|part| is_lasting(&part.rule)),
        // A span that comes later may carry randomness that decides otherwise.
        SamplingRule::Probabilistic { .. } => false,
        _ => false,
    }
}

//! Compiles settings to policies.

use std::sync::Arc;

use kubewake_config::model::{CompositePart, SamplingPolicy, SamplingRule};

use super::{
    CompiledPolicy, CompositeSubPolicy, PolicyNode,
    observe::{SpanCondition, SpanObserver},
    probability::TraceProbability,
    rate_limit::TokenBucket,
    stamp::StampTable,
};
use crate::core::TailSamplerStats;

/// Builds policy trees from settings, and assigns each condition its bit.
pub(super) struct PolicyCompiler<'a> {
    pub(super) observer: SpanObserver,
    pub(super) stamps: StampTable,
    pub(super) old: &'a [CompiledPolicy],
}

impl PolicyCompiler<'_> {
    pub(super) fn policy(&mut self, policy: &SamplingPolicy, stats: &TailSamplerStats) -> CompiledPolicy {
        let old = self.old.iter().find(|old| old.source == *policy).map(|old| &old.node);
        let stamp = self.stamps.intern_policy(&policy.name, None);
        CompiledPolicy {
            node: self.node(policy, old),
            source: policy.clone(),
            stamp,
            stats: stats.policy(&policy.name),
            is_lasting: is_lasting(&policy.rule),
        }
    }

    fn node(&mut self, policy: &SamplingPolicy, old: Option<&PolicyNode>) -> PolicyNode {
        if let Some((condition, invert)) = SpanCondition::from_rule(&policy.rule) {
            return PolicyNode::Bit { bit: self.observer.bit_for(condition), invert };
        }
        match &policy.rule {
            SamplingRule::Probabilistic { salt, percentage } => {
                let chance = TraceProbability::new(salt, *percentage);
                chance.weights().into_iter().for_each(|weight| self.stamps.intern_weight(weight));
                PolicyNode::Chance(chance)
            }
            SamplingRule::SpanCount { min, max } => PolicyNode::Spans { min: *min, max: *max },
            SamplingRule::RateLimiting(allowed) => PolicyNode::Rate(match old {
                Some(PolicyNode::Rate(bucket)) => bucket.clone(),
                _ => Arc::new(TokenBucket::new(*allowed)),
            }),
            SamplingRule::BytesLimiting(allowed) => PolicyNode::Bytes(match old {
                Some(PolicyNode::Bytes(bucket)) => bucket.clone(),
                _ => Arc::new(TokenBucket::new(*allowed)),
            }),
            SamplingRule::And(parts) => PolicyNode::And(self.nodes(parts, old)),
            SamplingRule::Drop(parts) => PolicyNode::Drop(self.nodes(parts, old)),
            SamplingRule::Not(part) => {
                let old = if let Some(PolicyNode::Not(old)) = old { Some(&**old) } else { None };
                PolicyNode::Not(Box::new(self.node(part, old)))
            }
            SamplingRule::Composite { max_total, parts } => {
                let part = |(at, part): (usize, &CompositePart)| {
                    let share = part.share(*max_total, parts.len());
                    self.part(policy, &part.policy, share, old, at)
                };
                PolicyNode::Composite { max: *max_total, parts: parts.iter().enumerate().map(part).collect() }
            }
            _ => PolicyNode::Always,
        }
    }

    fn nodes(&mut self, parts: &[SamplingPolicy], old: Option<&PolicyNode>) -> Vec<PolicyNode> {
        let old = match old {
            Some(PolicyNode::And(old) | PolicyNode::Drop(old)) => old.as_slice(),
            _ => &[],
        };
        parts.iter().enumerate().map(|(at, part)| self.node(part, old.get(at))).collect()
    }

    fn part(
        &mut self,
        whole: &SamplingPolicy,
        part: &SamplingPolicy,
        share: i64,
        old: Option<&PolicyNode>,
        at: usize,
    ) -> CompositeSubPolicy {
        let old = match old {
            Some(PolicyNode::Composite { parts, .. }) => parts.get(at),
            _ => None,
        };
        CompositeSubPolicy {
            node: self.node(part, old.map(|old| &old.node)),
            share,
            used: old.map(|old| old.used.clone()).unwrap_or_default(),
            stamp: self.stamps.intern_policy(&whole.name, Some(&part.name)),
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
        // A bit stays set, even that of a duration which has grown beyond its upper bound.
        SamplingRule::Latency { .. } => true,
        SamplingRule::SpanCount { max, .. } => *max == 0,
        SamplingRule::And(parts) => parts.iter().all(|part| is_lasting(&part.rule)),
        // A later span may carry randomness that decides otherwise.
        SamplingRule::Probabilistic { .. } => false,
        _ => false,
    }
}

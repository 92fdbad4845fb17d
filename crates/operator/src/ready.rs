//! Whether the collectors run.

use std::fmt;

use serde_json::Value;

use crate::{kind::Kind, live::Live, names};

/// How many collectors there are of each tier that is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collectors {
    tiers: Vec<Tier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tier {
    name: &'static str,
    is_there: bool,
    ready: i64,
    wanted: i64,
    /// Why there are not more, if somebody says so.
    trouble: Option<String>,
}

impl Collectors {
    /// The collectors that carry a pipeline, those of the sticky tier included if it has traces wait.
    pub fn of(live: &Live, is_sticky: bool) -> Self {
        let gateway = Tier::new(names::GATEWAY, live.get(Kind::Deployment, names::GATEWAY).as_deref());
        let sticky = is_sticky.then(|| Tier::new(names::STICKY, live.get(Kind::StatefulSet, names::STICKY).as_deref()));
        Self { tiers: [gateway].into_iter().chain(sticky).collect() }
    }

    /// So many of the gateway, of so many.
    #[cfg(test)]
    pub(crate) fn example(ready: i64, wanted: i64) -> Self {
        Self { tiers: vec![Tier { name: names::GATEWAY, is_there: true, ready, wanted, trouble: None }] }
    }

    /// None at all of a gateway.
    #[cfg(test)]
    pub(crate) fn missing() -> Self {
        Self { tiers: vec![Tier::new(names::GATEWAY, None)] }
    }

    /// Whether there is something of each tier, be it that nothing of it runs.
    pub fn are_there(&self) -> bool {
        self.tiers.iter().all(|tier| tier.is_there)
    }

    /// Whether one of each tier takes data.
    pub fn work(&self) -> bool {
        self.tiers.iter().all(|tier| tier.ready > 0)
    }

    /// In words.
    pub fn describe(&self) -> String {
        let tiers = self.tiers.iter().map(|tier| {
            let trouble = tier.trouble.as_ref().map(|words| format!(" ({words})")).unwrap_or_default();
            format!("{} of {} collectors of {} are ready{trouble}", tier.ready, tier.wanted, tier.name)
        });
        tiers.collect::<Vec<_>>().join("; ")
    }
}

/// `2/3`
impl fmt::Display for Collectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&Tier) -> i64| self.tiers.iter().map(of).sum::<i64>();
        write!(f, "{}/{}", sum(|tier| tier.ready), sum(|tier| tier.wanted))
    }
}

impl Tier {
    fn new(name: &'static str, workload: Option<&Value>) -> Self {
        let number = |pointer: &str| workload.and_then(|it| it.pointer(pointer)).and_then(Value::as_i64);
        let conditions = workload.and_then(|it| it.pointer("/status/conditions")?.as_array());
        let is_trouble = |it: &&Value| {
            let is = |key: &str, value: &str| it.get(key).and_then(Value::as_str) == Some(value);
            is("type", "ReplicaFailure") && is("status", "True") || is("type", "Progressing") && is("status", "False")
        };
        let trouble = conditions.into_iter().flatten().find(is_trouble);
        Self {
            name,
            is_there: workload.is_some(),
            ready: number("/status/readyReplicas").unwrap_or(0),
            wanted: number("/spec/replicas").unwrap_or(0),
            trouble: trouble.and_then(|it| it.get("message")?.as_str()).map(str::to_owned),
        }
    }
}

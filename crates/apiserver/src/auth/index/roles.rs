//! ClusterRoles, and the rules that aggregated ones gather from others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    api::meta::Meta,
    auth::rbac::{Rule, selects},
};

/// The rules of a role, shared.
pub type Rules = Arc<[Rule]>;

/// By name. Ordered, because aggregation gathers in the order of names.
#[derive(Debug, Default)]
pub(super) struct ClusterRoles {
    all: BTreeMap<Arc<str>, ClusterRole>,
    aggregated: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct ClusterRole {
    /// What applies: its own rules or, if it is aggregated, what it gathers.
    rules: Rules,
    /// The part of the object that selectors look at.
    labels: Value,
    aggregation: Option<Value>,
}

impl ClusterRoles {
    /// The rules of a role.
    pub fn get(&self, name: &str) -> Option<&Rules> {
        self.all.get(name).map(|role| &role.rules)
    }

    /// The aggregated roles with what they gather.
    pub fn aggregated(&self) -> impl Iterator<Item = (&Arc<str>, &Rules)> {
        self.aggregated.iter().filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Adds a role, or replaces the one of its name.
    pub fn insert(&mut self, object: &Value) {
        let name: Arc<str> = object.name().into();
        let labels = object.meta("labels").cloned().unwrap_or_default();
        let labels = serde_json::json!({"metadata": {"labels": labels}});
        let aggregation = object.get("aggregationRule").filter(|rule| !rule.is_null()).cloned();
        let aggregates = aggregation.is_some();
        let rules = Rule::parse_all(object).into();
        let old = self.all.insert(Arc::clone(&name), ClusterRole { rules, labels, aggregation });
        if aggregates {
            self.aggregated.insert(Arc::clone(&name));
        } else {
            self.aggregated.remove(&name);
        }
        if aggregates || self.is_selected(old.as_ref()) || self.is_selected(self.all.get(&name)) {
            self.gather();
        }
    }

    /// Forgets a role.
    pub fn remove(&mut self, name: &str) {
        let old = self.all.remove(name);
        self.aggregated.remove(name);
        if self.is_selected(old.as_ref()) {
            self.gather();
        }
    }

    /// Whether an aggregated role looks at this one: only then can a change of it change others.
    fn is_selected(&self, role: Option<&ClusterRole>) -> bool {
        let selectors = self.aggregated.iter().filter_map(|name| self.all.get(name)?.aggregation.as_ref());
        role.is_some_and(|role| selectors.into_iter().any(|aggregation| selects(aggregation, &role.labels)))
    }

    fn gather(&mut self) {
        let names: Vec<_> = self.aggregated.iter().cloned().collect();
        let gathered: Vec<Rules> = names.iter().map(|name| self.collect(name).into()).collect();
        for (name, rules) in names.iter().zip(gathered) {
            if let Some(role) = self.all.get_mut(name) {
                role.rules = rules;
            }
        }
    }

    /// All rules that an aggregated role gathers, each once. It may gather from aggregated ones, in circles too: each role counts once.
    fn collect(&self, name: &str) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        let mut seen = BTreeSet::new();
        // A list of what is to be looked at instead of a recursion, whose depth would be the clients' choice.
        let mut todo = vec![name];
        while let Some(name) = todo.pop() {
            let Some(role) = self.all.get(name).filter(|_| seen.insert(name)) else { continue };
            if let Some(aggregation) = &role.aggregation {
                let selected = self.all.iter().rev().filter(|(_, from)| selects(aggregation, &from.labels));
                todo.extend(selected.map(|(name, _)| &**name));
                continue;
            }
            for rule in role.rules.iter() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }
}

//! ClusterRoles, with the rules of aggregated ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    api::meta::MetaAccessor,
    auth::rbac::{PolicyRule, aggregation_selects},
};

/// The rules of a role, shared.
pub type SharedRules = Arc<[PolicyRule]>;

/// Roles by name. Sorted, because aggregation is in the order of names.
#[derive(Debug, Default)]
pub(super) struct ClusterRoles {
    all: BTreeMap<Arc<str>, ClusterRole>,
    aggregated: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct ClusterRole {
    /// The effective rules: its own or, if it is aggregated, the collected ones.
    rules: SharedRules,
    /// The part of the object that selectors match.
    labels: Value,
    aggregation: Option<Value>,
}

impl ClusterRoles {
    /// The rules of a role.
    pub fn get(&self, name: &str) -> Option<&SharedRules> {
        self.all.get(name).map(|role| &role.rules)
    }

    /// The aggregated roles and their collected rules.
    pub fn aggregated(&self) -> impl Iterator<Item = (&Arc<str>, &SharedRules)> {
        self.aggregated.iter().filter_map(|name| Some((name, self.get(name)?)))
    }

    pub fn insert(&mut self, object: &Value) {
        let name: Arc<str> = object.name().into();
        let labels = object.meta("labels").cloned().unwrap_or_default();
        let labels = serde_json::json!({"metadata": {"labels": labels}});
        let aggregation = object.get("aggregationRule").filter(|rule| !rule.is_null()).cloned();
        let aggregates = aggregation.is_some();
        let rules = PolicyRule::parse_all(object).into();
        let old = self.all.insert(Arc::clone(&name), ClusterRole { rules, labels, aggregation });
        if aggregates {
            self.aggregated.insert(Arc::clone(&name));
        } else {
            self.aggregated.remove(&name);
        }
        if aggregates || self.is_selected(old.as_ref()) || self.is_selected(self.all.get(&name)) {
            self.update_aggregated();
        }
    }

    pub fn remove(&mut self, name: &str) {
        let old = self.all.remove(name);
        self.aggregated.remove(name);
        if self.is_selected(old.as_ref()) {
            self.update_aggregated();
        }
    }

    /// Whether an aggregated role selects this one: only then can a change of it affect others.
    fn is_selected(&self, role: Option<&ClusterRole>) -> bool {
        let selectors = self.aggregated.iter().filter_map(|name| self.all.get(name)?.aggregation.as_ref());
        role.is_some_and(|role| selectors.into_iter().any(|aggregation| aggregation_selects(aggregation, &role.labels)))
    }

    fn update_aggregated(&mut self) {
        let names: Vec<_> = self.aggregated.iter().cloned().collect();
        let gathered: Vec<SharedRules> = names.iter().map(|name| self.collect_rules(name).into()).collect();
        for (name, rules) in names.iter().zip(gathered) {
            if let Some(role) = self.all.get_mut(name) {
                role.rules = rules;
            }
        }
    }

    /// All rules that an aggregated role collects, without duplicates. It may select aggregated roles, also in
    /// cycles: each role counts once.
    fn collect_rules(&self, name: &str) -> Vec<PolicyRule> {
        let mut rules: Vec<PolicyRule> = Vec::new();
        let mut seen = BTreeSet::new();
        // A work list instead of a recursion, whose depth clients could choose.
        let mut todo = vec![name];
        while let Some(name) = todo.pop() {
            let Some(role) = self.all.get(name).filter(|_| seen.insert(name)) else { continue };
            if let Some(aggregation) = &role.aggregation {
                let selected = self.all.iter().rev().filter(|(_, from)| aggregation_selects(aggregation, &from.labels));
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

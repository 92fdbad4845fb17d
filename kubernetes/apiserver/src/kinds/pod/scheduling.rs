//! Validates where a pod may run: affinity, tolerations, spreading and scheduling gates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names, selector},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    affinity(&spec.get("affinity"), errors);
    scheduling_gates(&spec.get("schedulingGates"), errors);
    topology(&spec.get("topologySpreadConstraints"), errors);
    tolerations(&spec.get("tolerations"), errors);
}

fn affinity(affinity: &FieldValue<'_>, errors: &mut FieldErrors) {
    let node = affinity.get("nodeAffinity");
    let required = node.get(REQUIRED);
    if required.is_set() {
        node_selector(&required, errors);
    }
    for term in node.get(PREFERRED).items() {
        weight(&term.get("weight"), errors);
        node_selector_term(&term.get("preference"), LabelValues::Any, errors);
    }
    for sort in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity.get(sort);
        for term in terms.get(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for weighted in terms.get(PREFERRED).items() {
            weight(&weighted.get("weight"), errors);
            pod_term(&weighted.get("podAffinityTerm"), errors);
        }
    }
}

fn weight(weight: &FieldValue<'_>, errors: &mut FieldErrors) {
    let given = weight.int().unwrap_or(0);
    if !(1..=100).contains(&given) {
        weight.report_invalid_as(errors, &given.to_string(), "must be in the range 1-100");
    }
}

/// Whether the values of a node selector must be those of labels. A preference may name any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LabelValues {
    Valid,
    Any,
}

/// Validates a selector of nodes: `{nodeSelectorTerms}`.
pub(in crate::kinds) fn node_selector(selector: &FieldValue<'_>, errors: &mut FieldErrors) {
    let terms = selector.get("nodeSelectorTerms");
    terms.require(errors, "must have at least one node selector term");
    for term in terms.items() {
        node_selector_term(&term, LabelValues::Valid, errors);
    }
}

fn node_selector_term(term: &FieldValue<'_>, allowed: LabelValues, errors: &mut FieldErrors) {
    for requirement in term.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").str() {
            "In" | "NotIn" => {
                values.require(errors, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                values.report_forbidden(errors, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if values.len() != 1 => {
                values.report_required(errors, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => unknown_operator(&requirement, errors),
        }
        let key = requirement.get("key");
        key.report_invalid_each(errors, names::qualified(key.str()));
        for value in values.items().filter(|_| allowed == LabelValues::Valid) {
            value.report_invalid_each(errors, names::label_value(value.str()));
        }
    }
    for requirement in term.get("matchFields").items() {
        let values = requirement.get("values");
        match requirement.get("operator").str() {
            "In" | "NotIn" if values.len() != 1 => {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                values.report_required(errors, detail);
            }
            "In" | "NotIn" => {}
            _ => unknown_operator(&requirement, errors),
        }
        let key = requirement.get("key");
        match key.str() {
            "metadata.name" => {
                values.items().for_each(|value| value.report_invalid_each(errors, names::subdomain(value.str())));
            }
            _ => key.report_invalid_each(errors, vec!["not a valid field selector key".to_owned()]),
        }
    }
}

fn unknown_operator(requirement: &FieldValue<'_>, errors: &mut FieldErrors) {
    requirement.get("operator").report_invalid_each(errors, vec!["not a valid selector operator".to_owned()]);
}

fn pod_term(term: &FieldValue<'_>, errors: &mut FieldErrors) {
    selector::validate(&term.get("labelSelector"), errors);
    selector::validate(&term.get("namespaceSelector"), errors);
    for namespace in term.get("namespaces").items() {
        for detail in names::label(namespace.str()) {
            errors.push(FieldError::invalid(term.get("namespace").path(), namespace.value, &detail));
        }
    }
    label_keys(term, errors);
    let key = term.get("topologyKey");
    key.require(errors, "can not be empty");
    key.report_invalid_each(errors, names::qualified(key.str()));
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys` beside a `labelSelector`.
fn label_keys(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    let selector = at.get("labelSelector");
    let given = [at.get("matchLabelKeys"), at.get("mismatchLabelKeys")];
    for keys in &given {
        if !keys.is_empty() && !selector.is_set() {
            keys.report_forbidden(errors, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            key.report_invalid_each(errors, names::qualified(key.str()));
        }
    }
    let [matching, mismatching] = &given;
    let mismatching: BTreeSet<&str> = strings(mismatching).collect();
    let positions: Vec<&str> = strings(matching).collect();
    let mut selected: BTreeSet<&str> = selector
        .value
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let expressions = selector.value.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    for key in expressions.filter_map(|one| one.get("key").and_then(Value::as_str)) {
        let place = positions.iter().rposition(|given| *given == key).filter(|_| selected.contains(key));
        if let Some(place) = place {
            let path = format!("{}[{place}]", at.path());
            errors.push(FieldError::invalid(path, &key.into(), "exists in both matchLabelKeys and labelSelector"));
        }
        selected.insert(key);
    }
    for key in matching.items().filter(|key| mismatching.contains(key.str())) {
        key.report_invalid(errors, "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

fn strings<'a>(list: &FieldValue<'a>) -> impl Iterator<Item = &'a str> {
    let items: &'a [Value] = list.value.as_array().map_or(&[], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

fn topology(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    let kind = |constraint: &FieldValue<'_>| {
        format!("{{{}, {}}}", constraint.get("topologyKey").str(), constraint.get("whenUnsatisfiable").str())
    };
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    list.items().for_each(|constraint| *counts.entry(kind(&constraint)).or_default() += 1);
    for constraint in list.items() {
        let skew = constraint.get("maxSkew");
        if skew.int().unwrap_or(0) < 1 {
            skew.report_invalid_as(errors, &skew.int().unwrap_or(0).to_string(), "must be greater than zero");
        }
        constraint.get("topologyKey").require(errors, "can not be empty");
        let action = constraint.get("whenUnsatisfiable");
        action.require_one_of(errors, &["DoNotSchedule", "ScheduleAnyway"]);
        // Each constraint is compared with those that follow.
        let kind = kind(&constraint);
        if let Some(left) = counts.get_mut(&kind) {
            *left = left.saturating_sub(1);
            if *left > 0 {
                let at = constraint.get("{topologyKey, whenUnsatisfiable}").path();
                errors.push(FieldError::duplicate(at, &kind.into()));
            }
        }
        let domains = constraint.get("minDomains");
        if let Some(count) = domains.int() {
            if count < 1 {
                domains.report_invalid(errors, "must be greater than zero");
            }
            if action.str() != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.str());
                domains.report_invalid(errors, &detail);
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.get(policy).is_set() {
                constraint.get(policy).require_one_of(errors, &["Honor", "Ignore"]);
            }
        }
        label_keys(&constraint, errors);
        selector::validate(&constraint.get("labelSelector"), errors);
    }
}

fn scheduling_gates(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (gate, value) in list.items().zip(list.value.as_array().into_iter().flatten()) {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        for wrong in names::qualified(name) {
            errors.push(FieldError::invalid(gate.path(), &name.into(), &wrong));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(gate.path(), &name.into()));
        }
    }
}

fn tolerations(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for toleration in list.items() {
        let key = toleration.get("key");
        let operator = toleration.get("operator");
        let value = toleration.get("value");
        let effect = toleration.get("effect");
        if !key.is_empty() {
            key.report_invalid_each(errors, names::qualified(key.str()));
        } else if operator.str() != "Exists" {
            let words = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            operator.report_invalid_each(errors, vec![words.to_owned()]);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.str() != "NoExecute" {
            effect.report_invalid_each(
                errors,
                vec!["effect must be 'NoExecute' when `tolerationSeconds` is set".to_owned()],
            );
        }
        match operator.str() {
            "" | "Equal" => {
                let wrong = names::label_value(value.str());
                if !wrong.is_empty() {
                    operator.report_invalid_as(errors, &value.value.to_string(), &wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                operator.report_invalid_as(
                    errors,
                    &value.value.to_string(),
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            // The operators that compare numbers are behind a feature gate. They are named to those who use them.
            sort @ ("Lt" | "Gt") => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(operator.path(), &sort.into(), &known));
            }
            _ => operator.require_one_of(errors, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            effect.require_one_of(errors, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

//! Selectors in access reviews, which the authorizers here ignore.

use serde_json::Value;

use crate::codec::selector::{FieldSelector, LabelSelector};

/// kube-apiserver's warning about unreadable selectors; empty if all can be read.
pub fn parse_warning(review: &Value) -> String {
    let all = [
        ("fieldSelector", unreadable_field_selector as fn(&Value) -> UnreadableSelector),
        ("labelSelector", unreadable_label_selector),
    ];
    let said = all.iter().filter_map(|(name, read)| {
        let selector = review.pointer(&format!("/spec/resourceAttributes/{name}")).filter(|given| !given.is_null())?;
        let how = match read(selector) {
            UnreadableSelector::Nothing => return None,
            UnreadableSelector::Some => "partially ignored",
            UnreadableSelector::All => "ignored",
        };
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    said.collect::<Vec<_>>().join("; ")
}

/// Which part of a selector cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnreadableSelector {
    Nothing,
    Some,
    All,
}

fn unreadable_requirements(
    selector: &Value,
    parses: impl Fn(&str) -> bool,
    fits: impl Fn(&str, usize) -> bool,
) -> UnreadableSelector {
    let raw = selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default();
    if !raw.is_empty() {
        return if parses(raw) { UnreadableSelector::Nothing } else { UnreadableSelector::All };
    }
    let listed = selector.get("requirements").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let good = listed.iter().filter(|requirement| {
        let operator = requirement.get("operator").and_then(Value::as_str).unwrap_or_default();
        fits(operator, requirement.get("values").and_then(Value::as_array).map_or(0, Vec::len))
    });
    match good.count() {
        count if count == listed.len() => UnreadableSelector::Nothing,
        0 => UnreadableSelector::All,
        _ => UnreadableSelector::Some,
    }
}

/// Field requirements are equality or inequality with one value.
fn unreadable_field_selector(selector: &Value) -> UnreadableSelector {
    let parses = |raw: &str| FieldSelector::parse(raw).is_ok();
    unreadable_requirements(selector, parses, |operator, values| matches!(operator, "In" | "NotIn") && values == 1)
}

fn unreadable_label_selector(selector: &Value) -> UnreadableSelector {
    let known = ["In", "NotIn", "Exists", "DoesNotExist"];
    unreadable_requirements(selector, |raw| LabelSelector::parse(raw).is_ok(), |operator, _| known.contains(&operator))
}

//! Selectors in the questions of access reviews, of which no authorizer here takes notice.

use serde_json::Value;

use crate::codec::selector::{FieldSelector, LabelSelector};

/// What kube-apiserver says of selectors that it cannot read; empty if it can read all.
pub fn ignored(review: &Value) -> String {
    let all = [("fieldSelector", unread_field as fn(&Value) -> Unread), ("labelSelector", unread_label)];
    let said = all.iter().filter_map(|(name, read)| {
        let selector = review.pointer(&format!("/spec/resourceAttributes/{name}")).filter(|given| !given.is_null())?;
        let how = match read(selector) {
            Unread::Nothing => return None,
            Unread::Some => "partially ignored",
            Unread::All => "ignored",
        };
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    said.collect::<Vec<_>>().join("; ")
}

/// How much of a selector cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Nothing,
    Some,
    All,
}

fn unread(selector: &Value, parses: impl Fn(&str) -> bool, fits: impl Fn(&str, usize) -> bool) -> Unread {
    let raw = selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default();
    if !raw.is_empty() {
        return if parses(raw) { Unread::Nothing } else { Unread::All };
    }
    let listed = selector.get("requirements").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let good = listed.iter().filter(|requirement| {
        let operator = requirement.get("operator").and_then(Value::as_str).unwrap_or_default();
        fits(operator, requirement.get("values").and_then(Value::as_array).map_or(0, Vec::len))
    });
    match good.count() {
        count if count == listed.len() => Unread::Nothing,
        0 => Unread::All,
        _ => Unread::Some,
    }
}

/// Fields are equal to one value, or not.
fn unread_field(selector: &Value) -> Unread {
    let parses = |raw: &str| FieldSelector::parse(raw).is_ok();
    unread(selector, parses, |operator, values| matches!(operator, "In" | "NotIn") && values == 1)
}

fn unread_label(selector: &Value) -> Unread {
    let known = ["In", "NotIn", "Exists", "DoesNotExist"];
    unread(selector, |raw| LabelSelector::parse(raw).is_ok(), |operator, _| known.contains(&operator))
}

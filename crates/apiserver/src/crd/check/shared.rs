//! What all versions have in common.

use serde_json::{Map, Value, json};

use crate::{
    api::field::{Error, Errors, html_escaped},
    crd::structural::{array, flag, text},
};

/// The versions of a CRD, and what of them stands at the top of its spec.
pub(super) struct Shared<'a> {
    pub(super) versions: Vec<&'a Map<String, Value>>,
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a Value>,
    pub(super) selectable: Option<&'a Value>,
    same: [bool; 4],
}

const FIELDS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

impl<'a> Shared<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Self {
        let versions: Vec<_> = versions.iter().filter_map(Value::as_object).collect();
        let first = versions.first().copied();
        let same = FIELDS
            .map(|field| versions.iter().all(|version| version.get(field) == first.and_then(|first| first.get(field))));
        let get = |at: usize| {
            FIELDS.get(at).zip(same.get(at)).filter(|(_, same)| **same).and_then(|(field, _)| first?.get(*field))
        };
        Self { schema: get(0), subresources: get(1), columns: get(2), selectable: get(3), same, versions }
    }

    /// What a version has of its own: nothing, where all versions have the same.
    pub(super) fn own(&self, version: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
        let shared = FIELDS.iter().zip(self.same).any(|(of, same)| *of == field && same);
        version.get(field).filter(|value| !shared && !value.is_null())
    }

    /// Every version has a schema.
    pub(super) fn require_schemas(&self, errors: &mut Errors) {
        let has = |schema: Option<&Value>| {
            schema.and_then(|schema| schema.get("openAPIV3Schema")).is_some_and(|schema| !schema.is_null())
        };
        if has(self.schema) {
            return;
        }
        for (index, version) in self.versions.iter().enumerate() {
            if !has(self.own(version, "schema")) {
                errors.push(Error::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
            }
        }
    }

    /// All versions are wrong together. They are shown as Go shows its internal structs.
    pub(super) fn invalid(&self, detail: &str) -> Error {
        let each = self.versions.iter().map(|version| {
            let own = |field: &str| self.own(version, field).unwrap_or(&Value::Null);
            let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{warning},\"Schema\":{},\
                 \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                json!(text(version, "name")),
                flag(version, "served"),
                flag(version, "storage"),
                flag(version, "deprecated"),
                own("schema"),
                own("subresources"),
                own("additionalPrinterColumns"),
                own("selectableFields"),
            )
        });
        let shown = html_escaped(&each.collect::<Vec<_>>().join(","));
        let shown = if self.versions.is_empty() { "null".to_owned() } else { format!("[{shown}]") };
        Error::of("spec.versions", crate::api::field::Kind::Invalid, format!("Invalid value: {shown}: {detail}"))
    }

    /// Whether a version has a subresource `status`.
    pub(super) fn has_status(version: &Map<String, Value>) -> bool {
        version.get("subresources").and_then(|all| all.get("status")).is_some_and(|status| !status.is_null())
    }
}

/// The items of an optional list.
pub(super) fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `x-kubernetes-validations[i]` as Go shows its internal struct.
pub(super) fn rule_shown(rule: &Map<String, Value>) -> String {
    let or_null = |name: &str| rule.get(name).unwrap_or(&Value::Null);
    html_escaped(&format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(text(rule, "rule")),
        json!(text(rule, "message")),
        json!(text(rule, "messageExpression")),
        or_null("reason"),
        json!(text(rule, "fieldPath")),
        or_null("optionalOldSelf"),
    ))
}

/// Texts of a list.
pub(super) fn texts<'a>(from: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    array(from, name).iter().filter_map(Value::as_str)
}

//! The fields that all versions have in common.

use serde_json::{Map, Value, json};

use crate::{
    api::field::{FieldError, FieldErrors, escape_html},
    crd::structural::{array_field, bool_field, text},
};

/// The versions of a CRD, and the fields that are at the top of the internal spec.
pub(super) struct VersionFields<'a> {
    pub(super) versions: Vec<&'a Map<String, Value>>,
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a Value>,
    pub(super) selectable: Option<&'a Value>,
    same: [bool; 4],
}

const COMMON_FIELDS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

impl<'a> VersionFields<'a> {
    pub(super) fn from_versions(versions: &'a [Value]) -> Self {
        let versions: Vec<_> = versions.iter().filter_map(Value::as_object).collect();
        let first = versions.first().copied();
        let same = COMMON_FIELDS
            .map(|field| versions.iter().all(|version| version.get(field) == first.and_then(|first| first.get(field))));
        let get = |at: usize| {
            COMMON_FIELDS.get(at).zip(same.get(at)).filter(|(_, same)| **same).and_then(|(field, _)| first?.get(*field))
        };
        Self { schema: get(0), subresources: get(1), columns: get(2), selectable: get(3), same, versions }
    }

    /// A version's own value of a field; none if all versions have the same.
    pub(super) fn own(&self, version: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
        let shared = COMMON_FIELDS.iter().zip(self.same).any(|(of, same)| *of == field && same);
        version.get(field).filter(|value| !shared && !value.is_null())
    }

    /// Requires a schema in every version.
    pub(super) fn require_schemas(&self, errors: &mut FieldErrors) {
        let has = |schema: Option<&Value>| {
            schema.and_then(|schema| schema.get("openAPIV3Schema")).is_some_and(|schema| !schema.is_null())
        };
        if has(self.schema) {
            return;
        }
        for (index, version) in self.versions.iter().enumerate() {
            if !has(self.own(version, "schema")) {
                errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
            }
        }
    }

    /// An error about all versions, which are shown as Go prints its internal structs.
    pub(super) fn invalid(&self, detail: &str) -> FieldError {
        let each = self.versions.iter().map(|version| {
            let own = |field: &str| self.own(version, field).unwrap_or(&Value::Null);
            let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{warning},\"Schema\":{},\
                 \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                json!(text(version, "name")),
                bool_field(version, "served"),
                bool_field(version, "storage"),
                bool_field(version, "deprecated"),
                own("schema"),
                own("subresources"),
                own("additionalPrinterColumns"),
                own("selectableFields"),
            )
        });
        let shown = escape_html(&each.collect::<Vec<_>>().join(","));
        let shown = if self.versions.is_empty() { "null".to_owned() } else { format!("[{shown}]") };
        FieldError::new(
            "spec.versions",
            crate::api::field::FieldErrorType::Invalid,
            format!("Invalid value: {shown}: {detail}"),
        )
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

/// `x-kubernetes-validations[i]` as Go prints its internal struct.
pub(super) fn format_rule(rule: &Map<String, Value>) -> String {
    let or_null = |name: &str| rule.get(name).unwrap_or(&Value::Null);
    escape_html(&format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(text(rule, "rule")),
        json!(text(rule, "message")),
        json!(text(rule, "messageExpression")),
        or_null("reason"),
        json!(text(rule, "fieldPath")),
        or_null("optionalOldSelf"),
    ))
}

pub(super) fn texts<'a>(from: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    array_field(from, name).iter().filter_map(Value::as_str)
}

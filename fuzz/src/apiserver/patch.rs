//! Patches, and the sets of server-side apply.

use kubewake_apiserver::{
    api::GroupVersion,
    apply::FieldSet,
    patch,
    schema::{Schema, SchemaShape, builtin, decode},
};
use serde_json::Value;

use super::codec::comparable;
use crate::two_texts;

/// The document to patch, and the patch.
fn document_and_patch(data: &[u8]) -> Option<(Value, &str)> {
    let (document, patch) = two_texts(data)?;
    Some((serde_json::from_str(document).ok()?, patch))
}

fn is_within_depth(before: &Value, after: &Value) {
    let limit = patch::MAX_DEPTH.max(super::depth(before));
    assert!(super::depth(after) <= limit, "a patch made an object {} deep", super::depth(after));
}

/// Where the crate `json-patch` accepts a patch as well, the result is the same.
pub(super) fn json(data: &[u8]) {
    let Some((document, patch)) = document_and_patch(data) else { return };
    let mut ours = document.clone();
    if patch::apply_json_patch(&mut ours, patch.as_bytes()).is_err() {
        return;
    }
    is_within_depth(&document, &ours);
    let Ok(operations) = serde_json::from_str::<json_patch::Patch>(patch) else { return };
    let mut theirs = document;
    if json_patch::patch(&mut theirs, &operations).is_ok() {
        assert_eq!(comparable(&ours), comparable(&theirs));
    }
}

/// The result equals that of the crate `json-patch`, except for nulls in lists, which Kubernetes treats
/// differently.
pub(super) fn merge(data: &[u8]) {
    let Some((document, patch)) = document_and_patch(data) else { return };
    let mut ours = document.clone();
    if patch::apply_merge_patch(&mut ours, patch.as_bytes()).is_err() {
        return;
    }
    let patch: Value = serde_json::from_str(patch).expect("a patch that was applied is JSON");
    if !has_null_in_list(&patch, false) {
        let mut theirs = document;
        json_patch::merge(&mut theirs, &patch);
        assert_eq!(comparable(&ours), comparable(&theirs));
        let mut twice = ours.clone();
        patch::apply_merge_patch(&mut twice, patch.to_string().as_bytes()).expect("a patch applies again");
        assert_eq!(comparable(&twice), comparable(&ours));
    }
}

fn has_null_in_list(value: &Value, in_list: bool) -> bool {
    match value {
        Value::Null => in_list,
        Value::Array(items) => items.iter().any(|item| has_null_in_list(item, true)),
        Value::Object(members) => members.values().any(|member| has_null_in_list(member, in_list)),
        _ => false,
    }
}

/// No patch exceeds the depth limit of objects, and a patch whose result is a pod is idempotent. Other results
/// would be refused by validation: there a second patch may differ, as for a list whose items have no merge
/// key.
pub(super) fn strategic(data: &[u8]) {
    let Some((document, text)) = document_and_patch(data) else { return };
    let schema = builtin::schema_for_kind(&GroupVersion::new("", "v1"), "Pod").expect("pods are built in");
    let apply = |object: Value| patch::apply_strategic_merge(object, patch::parse_object(text.as_bytes())?, schema);
    let Ok(once) = apply(document.clone()) else { return };
    is_within_depth(&document, &once);
    let mut checked = once.clone();
    let is_pod = decode::check_types(&mut checked, schema).is_ok_and(|unknown| unknown.is_empty());
    if is_pod && checked == once && has_merge_keys(&once, schema) {
        let twice = apply(once.clone()).unwrap_or_else(|status| panic!("refused the second time: {status:?}"));
        assert_eq!(twice, once);
    }
}

/// Whether the items of every merged list can be told apart: each has the key, and no two have the same.
fn has_merge_keys(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().all(|(name, member)| schema.field(name).is_none_or(|schema| has_merge_keys(member, schema)))
        }
        Value::Array(items) => {
            let SchemaShape::List { items: item_schema, .. } = &schema.shape else { return true };
            let key = schema.patch.merge_key.as_deref();
            let identity = |item: &Value| key.map_or(Some(item.clone()), |key| item.get(key).cloned());
            let ids: Vec<_> = items.iter().map(identity).collect();
            let told_apart = (1..).zip(&ids).all(|(next, id)| id.is_some() && !ids[next..].contains(id));
            (told_apart || !schema.patch.merge) && items.iter().all(|item| has_merge_keys(item, item_schema))
        }
        _ => true,
    }
}

/// A decoded field set is written unchanged, and the laws of sets hold.
pub(super) fn fields_v1(data: &[u8]) {
    let Some((left, right)) = two_texts(data) else { return };
    let read = |text: &str| FieldSet::from_value(&serde_json::from_str(text).ok()?).ok();
    let (Some(left), Some(right)) = (read(left), read(right)) else { return };
    assert_eq!(FieldSet::from_value(&left.to_value()).as_ref(), Ok(&left));
    let union = left.clone().union(&right);
    assert_eq!(union, right.clone().union(&left));
    assert_eq!(left.intersection(&union), left);
    assert!(left.clone().difference(&union).is_empty());
    assert_eq!(left.intersection(&right), right.intersection(&left));
}
